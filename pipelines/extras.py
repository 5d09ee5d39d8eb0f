"""Optional packages: the extras of Plumbline that install them, and the error for a missing one."""

from __future__ import annotations

import importlib.util

from plumbline.warehouse.errors import MissingComponent
from plumbline.warehouse.plugins import install_line

#: Name in an import statement -> extra of ``pyproject.toml`` that installs it.
EXTRA_OF = {
    "fasttext": "vocabulary",
    "nltk": "vocabulary",
    "pooch": "vocabulary",
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
