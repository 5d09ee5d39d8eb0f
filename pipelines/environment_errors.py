"""Errors of the machine or the data, not of the program: one line, not a traceback.

A full disk, a wrong path, too little memory or file handles, damaged data, text not in UTF-8, an
optional package that isn't installed.
"""

from __future__ import annotations

import errno
import importlib.util
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass

from plumbline.warehouse.errors import BadInput, MissingComponent, PlumblineError
from plumbline.warehouse.plugins import install_line

#: Name in an import statement -> extra of ``pyproject.toml`` that installs it.
EXTRA_OF = {
    "fasttext": "vocabulary",
    "nltk": "vocabulary",
    "requests": "vocabulary",
    "openai": "models",
    "peft": "models",
    "safetensors": "models",
    "tokenizers": "models",
    "torch": "models",
    "transformers": "models",
    "vaderSentiment": "models",
    "fastapi": "schedule",
    "prefect": "schedule",
    "sqlalchemy": "schedule",  # needed by prefect
    "spacy": "languages",
    "vl_convert": "figures",
    "obstore": "cloud",
    "pandas": "spark",
    "py4j": "spark",
    "pyspark": "spark",
}


@dataclass(frozen=True)
class _Cause:
    """A cause by ``OSError`` numbers and by texts in messages of Java, SQLite, DuckDB or torch."""

    fix: str
    numbers: tuple[int, ...] = ()
    signs: tuple[str, ...] = ()


_RENAME = "type it in UTF-8; a file of such a name has to be renamed"
_RESUME = "finished work is kept: run the same command again to resume"
_CAUSES = (
    _Cause(
        f"make room; {_RESUME}",
        (errno.ENOSPC, errno.EDQUOT, errno.EROFS),
        (
            "No space left on device",
            "database or disk is full",
            "disk quota exceeded",
            "Read-only file system",
            "attempt to write a readonly database",
        ),
    ),
    _Cause(
        f"allow larger files with `ulimit -f`; {_RESUME}",
        (errno.EFBIG,),
        ("File too large",),
    ),
    _Cause(
        f"allow more with `ulimit -n`; {_RESUME}",
        (errno.EMFILE, errno.ENFILE),
        ("Too many open files",),
    ),
    _Cause(
        f"give it more memory; {_RESUME}",
        (errno.ENOMEM,),
        ("Cannot allocate memory", "can't allocate memory", "std::bad_alloc", "Out of Memory"),
    ),
    _Cause(
        "check the path",
        (errno.ENAMETOOLONG, errno.ELOOP, errno.EISDIR, errno.ENOTDIR, errno.EINVAL),
    ),
)
#: DuckDB's errors about data, not about a query.
_OF_DATA = re.compile(
    "Conversion Error|Out of Range Error|Failed to read file|[Pp]arquet|TProtocolException"
    "|Out of buffer|Malformed JSON|ZSTD"
)


def one_line(error: BaseException) -> PlumblineError | None:
    """An error as the one-line error that the user gets; ``None`` for a defect of the program."""
    if isinstance(error, PlumblineError):
        return error
    return missing(error) or problem(error)


def problem(error: BaseException) -> BadInput | None:
    """The one-line error if the machine or the data is the cause; ``None`` for other errors.

    Also checks the causes of the error.

    >>> import errno
    >>> problem(OSError(errno.ENOSPC, "No space left on device", "out/x")).args[:2]
    ('out/x', 'No space left on device')
    >>> problem(ValueError("no number")) is None
    True
    """
    for link in chain(error):
        for cause in _CAUSES:
            if matched := _matched(cause, link):
                return matched
        if isinstance(link, UnicodeEncodeError) and "surrogates" in link.reason:
            return BadInput(f"text {link.object[:200]!r}", "is not in UTF-8", _RENAME)
        if "cannot encode str as UTF-8" in str(link):  # DuckDB's message
            return BadInput("a name or text that was given", "is not in UTF-8", _RENAME)
        if isinstance(link, MemoryError):
            return BadInput("memory", "there is too little", f"give it more; {_RESUME}")
        if type(link).__module__.endswith("duckdb") and _OF_DATA.search(str(link)):
            fix = "`plumbline warehouse check` names damaged files"
            return BadInput("a table can't be read", str(link)[:1000], fix)
    return None


def _matched(cause: _Cause, error: BaseException) -> BadInput | None:
    """The error for the user if ``error`` has this cause; a bad path must be in ``filename``."""
    name = getattr(error, "filename", None)
    if isinstance(error, OSError) and error.errno in cause.numbers and (cause.signs or name):
        reason = (name and error.strerror) or os.strerror(error.errno)
        return BadInput(str(name or "this machine"), reason, cause.fix)
    signs = (sign for sign in cause.signs if sign in str(error))
    return next((BadInput(str(name or "this machine"), sign, cause.fix) for sign in signs), None)


def chain(error: BaseException | None) -> Iterator[BaseException]:
    """An exception, then its ``__cause__`` or else ``__context__``, and so on; each once."""
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        yield error
        error = error.__cause__ or error.__context__


def require(package: str) -> None:
    """Raise ``MissingComponent`` if an optional package isn't installed, without importing it.

    >>> require("json")
    """
    if importlib.util.find_spec(package) is None:
        raise MissingComponent(package, "is not installed", install_line(EXTRA_OF[package]))


def missing(error: BaseException) -> MissingComponent | None:
    """The error for a failed import of an optional package; ``None`` for every other error.

    >>> str(missing(ModuleNotFoundError("No module named 'torch'", name="torch.nn")))
    "torch: is not installed (pip install 'plumbline-lm[models]')"
    >>> missing(ModuleNotFoundError("No module named 'jobs'", name="jobs")) is None
    True
    """
    if not isinstance(error, ModuleNotFoundError):
        return None
    package = (error.name or "").split(".")[0]
    if package not in EXTRA_OF:
        return None
    return MissingComponent(package, "is not installed", install_line(EXTRA_OF[package]))
