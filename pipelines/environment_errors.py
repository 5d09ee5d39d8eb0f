"""Turn errors that aren't bugs into one-line messages without a traceback.

Examples: a full disk, a wrong path, too little memory, too many open files, damaged data, text that
isn't UTF-8, and a missing optional package.
"""

from __future__ import annotations

import errno
import importlib.util
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager

from plumbline.warehouse.errors import BadInput, MissingComponent, PlumblineError
from plumbline.warehouse.plugins import install_line

_PACKAGES = {
    "cloud": "obstore",
    "figures": "vl_convert",
    "languages": "spacy",
    "models": "openai peft psutil safetensors tokenizers torch transformers vaderSentiment",
    "schedule": "fastapi prefect sqlalchemy",
    "spark": "pandas py4j pyspark",
    "vocabulary": "fasttext nltk",
}
#: For each imported package, the extra in ``pyproject.toml`` that installs it.
EXTRA_OF = {name: extra for extra, names in _PACKAGES.items() for name in names.split()}
_RESUME = "finished work is kept: run the same command again to resume"
_FIXES = {
    **dict.fromkeys((errno.ENOSPC, errno.EDQUOT, errno.EROFS), f"make room; {_RESUME}"),
    errno.EFBIG: f"allow larger files with `ulimit -f`; {_RESUME}",
    **dict.fromkeys((errno.EMFILE, errno.ENFILE), f"allow more with `ulimit -n`; {_RESUME}"),
    errno.ENOMEM: f"give it more memory; {_RESUME}",
}
#: Phrases in error messages of Java, SQLite, DuckDB and torch, and the errno that each means.
_SIGNS = {
    **{os.strerror(number): number for number in _FIXES},
    "database or disk is full": errno.ENOSPC,
    "attempt to write a readonly database": errno.EROFS,
    **dict.fromkeys(("can't allocate memory", "std::bad_alloc", "Out of Memory"), errno.ENOMEM),
}
#: Finds the name of a file in DuckDB's messages.
_NAMED = re.compile(r'file "([^"]+)"')
#: Errors that a wrong path causes. If a file vanishes while a directory is listed, it is ENOENT.
_OF_PATHS = (errno.EEXIST, errno.EINVAL, errno.EISDIR, errno.ELOOP, errno.ENOENT, errno.ENOTDIR)
#: DuckDB messages that mean that the data is wrong, not the query.
_OF_DATA = re.compile(
    "Conversion Error|Out of Range Error|Failed to read file|[Pp]arquet|TProtocolException"
    "|Out of buffer|Malformed JSON|ZSTD"
)


def one_line(error: BaseException) -> PlumblineError | None:
    """Return a one-line error that describes the exception, or ``None`` if it is a bug."""
    if isinstance(error, PlumblineError):
        return error
    return missing(error) or problem(error)


@contextmanager
def in_one_line() -> Iterator[None]:
    """Turn an exception raised in the ``with`` block into a one-line error, unless it is a bug."""
    try:
        yield
    except Exception as e:
        line = one_line(e)
        if line is None or line is e:
            raise
        raise line from None


def problem(error: BaseException) -> BadInput | None:
    """Return a one-line error if the machine or the data caused the exception, else ``None``.

    Checks the exception, then the exceptions that caused it.

    >>> import errno
    >>> problem(OSError(errno.ENOSPC, "No space left on device", "out/x")).args[:2]
    ('out/x', 'No space left on device')
    >>> problem(RuntimeError('Could not write file "w/x": No space left on device')).args[0]
    'w/x'
    >>> str(problem(FileNotFoundError(errno.ENOENT, "", "a.txt")))
    'a.txt: No such file or directory (check the path)'
    >>> problem(ValueError("no number")) is None
    True
    """
    for link in chain(error):
        name, number = getattr(link, "filename", None), getattr(link, "errno", None)
        if isinstance(link, MemoryError):
            number = errno.ENOMEM
        if name and number in (*_OF_PATHS, errno.ENAMETOOLONG):
            return BadInput(str(name), os.strerror(number), "check the path")
        if number not in _FIXES:
            number = next((_SIGNS[sign] for sign in _SIGNS if sign in str(link)), None)
        if number is not None:
            where = name or next(iter(_NAMED.findall(str(link))), "this machine")
            return BadInput(str(where), os.strerror(number), _FIXES[number])
        is_not_unicode = isinstance(link, UnicodeEncodeError) and "surrogates" in link.reason
        if is_not_unicode or "cannot encode str as UTF-8" in str(link):  # DuckDB's message
            fix = "type it in UTF-8; rename a file whose name isn't UTF-8"
            return BadInput("a given name or text", "is not in UTF-8", fix)
        if type(link).__module__.endswith("duckdb") and _OF_DATA.search(str(link)):
            fix = "`plumbline warehouse check` names damaged files"
            return BadInput("a table can't be read", str(link)[:1000], fix)
    return None


def chain(error: BaseException | None) -> Iterator[BaseException]:
    """Yield an exception, then its cause, then the cause of the cause, and so on."""
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        yield error
        error = error.__cause__ or error.__context__


def require(package: str) -> None:
    """Raise ``MissingComponent`` if an optional package isn't installed. Doesn't import it.

    >>> require("json")
    """
    if importlib.util.find_spec(package) is None:
        raise MissingComponent(package, "is not installed", install_line(EXTRA_OF[package]))


def missing(error: BaseException) -> MissingComponent | None:
    """If the import of an optional package failed, return an error that says how to install it.

    Returns ``None`` for any other exception.

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
