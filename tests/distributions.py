"""The wheel and the sdist, built as `pip` builds them, from a copy of the sources."""

import shutil
import subprocess
import sys
from pathlib import Path

from tests.conftest import REPOSITORY

ROOMS = ("eval_workers", "jobs", "pipelines", "spark_conf", "warehouse")
FILES = (
    *("CHANGELOG.md", "CITATION.cff", "LICENSE", "MANIFEST.in", "README.md", "codemeta.json"),
    *("pyproject.toml", "setup.py"),
)
_BUILT = shutil.ignore_patterns("__pycache__", "*.pyc")


def copy_sources(directory: Path) -> Path:
    """Copy what a package is built from, without an old `build/`, which would be shipped too."""
    for name in (*ROOMS, "plumbline"):
        shutil.copytree(REPOSITORY / name, directory / name, symlinks=True, ignore=_BUILT)
    for name in FILES:
        shutil.copy(REPOSITORY / name, directory)
    return directory


def build(kind: str, sources: Path, out: Path) -> Path:
    """Build a `wheel` or an `sdist` through setuptools' own entry; returns the file."""
    code = f"import sys; from setuptools import build_meta as b; print(b.build_{kind}(sys.argv[1]))"
    out.mkdir(parents=True, exist_ok=True)
    command = [sys.executable, "-c", code, str(out)]
    done = subprocess.run(command, cwd=sources, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-2000:]
    return out / done.stdout.splitlines()[-1]


def source_files() -> set[str]:
    """Files of the package `plumbline`, as paths within it; the rooms are its subpackages."""
    own = {"py.typed"} | {path.name for path in (REPOSITORY / "plumbline").glob("*.py")}
    return own | {
        path.relative_to(REPOSITORY).as_posix()
        for room in ROOMS
        for path in (REPOSITORY / room).rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }


def clashing_packages(directory: Path) -> None:
    """Put packages of the rooms' names into a directory; importing one raises."""
    for room in ROOMS:
        (directory / room).mkdir()
        text = f"raise RuntimeError('this is the {room} of somebody else')\n"
        (directory / room / "__init__.py").write_text(text, encoding="utf-8")
