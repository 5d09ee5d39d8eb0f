"""Write the project to a zip archive, from which Spark's Python processes import it."""

from __future__ import annotations

import zipfile
from collections.abc import Iterator
from importlib import metadata, resources
from pathlib import Path
from typing import TYPE_CHECKING

from plumbline.warehouse.paths import replacing
from plumbline.warehouse.plugins import NAME as PROJECT

if TYPE_CHECKING:
    from importlib.resources.abc import Traversable

#: The archive's file name in the output of `make dist`.
NAME = "plumbline.zip"


def write_archive(path: Path) -> Path:
    """Write this package and its data files to a zip archive.

    The archive's bytes depend only on the files' names and contents. Missing parent directories are
    created. The archive is written completely or not at all.

    >>> import tempfile
    >>> archive = zipfile.ZipFile(write_archive(Path(tempfile.mkdtemp()) / "dist" / NAME))
    >>> "plumbline/jobs/kernel/tokens/english.json" in archive.namelist()
    True
    """
    with (
        replacing(path) as temporary,
        zipfile.ZipFile(temporary, "w", zipfile.ZIP_DEFLATED) as archive,
    ):
        for name, data in _files():
            # Without a date, ZipInfo uses 1980-01-01. So the bytes don't depend on the clock.
            archive.writestr(zipfile.ZipInfo(name), data, zipfile.ZIP_DEFLATED)
    return path


def _files() -> Iterator[tuple[str, bytes]]:
    # Include the whole project, because a driver may run from the archive too.
    yield from _files_below(resources.files("plumbline"), "plumbline")
    try:
        project = metadata.distribution(PROJECT)
    except metadata.PackageNotFoundError:
        return
    # Code in the archive reads its version from METADATA. In a checkout, the .egg-info directory
    # has the same text in PKG-INFO.
    text = project.read_text("METADATA") or project.read_text("PKG-INFO") or ""
    directory = f"{project.name.replace('-', '_')}-{project.version}.dist-info"
    yield f"{directory}/METADATA", text.encode()


def _files_below(directory: Traversable, name: str) -> Iterator[tuple[str, bytes]]:
    for entry in sorted(directory.iterdir(), key=lambda entry: entry.name):
        if entry.is_file():
            yield f"{name}/{entry.name}", entry.read_bytes()
        elif entry.name != "__pycache__":
            yield from _files_below(entry, f"{name}/{entry.name}")
