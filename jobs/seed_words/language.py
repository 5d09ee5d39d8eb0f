"""How English a word looks to fastText's language identification (lid.176).

The only file that imports fastText, and only when a model is loaded. The model is no part of the
project: it is given by a path, or fetched once from its makers and checked.
"""

from __future__ import annotations

import hashlib
import os
import urllib.error
import urllib.request
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from plumbline.warehouse.errors import BadInput, MissingComponent

ENGLISH = "__label__en"
INSTALL = "pip install 'plumbline[vocabulary]'"


@dataclass(frozen=True)
class Published:
    """A file as its makers offer it: where it lies, its size in bytes and its SHA-256."""

    url: str
    n_bytes: int
    sha256: str


#: The compressed lid.176 (CC BY-SA 3.0).
LID_176 = Published(
    "https://dl.fbaipublicfiles.com/fasttext/supervised-models/lid.176.ftz",
    938_013,
    "8f3472cfe8738a7b6099e8e999c3cbfae0dcd15696aac7d7738a8039db603e83",
)


@dataclass(frozen=True)
class LanguageModel:
    """A loaded model: its file's name and SHA-256, and how many languages it tells apart."""

    name: str
    sha256: str
    n_languages: int
    _model: Any = field(repr=False)

    def english(self, words: Sequence[str]) -> list[float]:
        """The probability that each word is English, from 0 to 1; 0 where it is below 1e-5."""
        if not words:
            return []
        languages, shares = self._model.predict(list(words), k=-1)
        found = (dict(zip(*pair, strict=True)) for pair in zip(languages, shares, strict=True))
        # fastText adds a little to each probability before its logarithm: the sum may pass 1.
        return [min(1.0, float(row.get(ENGLISH, 0.0))) for row in found]


def default_path() -> Path:
    """Where a fetched model is kept: `plumbline/lid.176.ftz` in the user's cache directory."""
    cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(cache) / "plumbline" / "lid.176.ftz"


def load(path: Path) -> LanguageModel:
    """Load a model that tells English from at least one other language.

    Raises:
        MissingComponent: fastText is not installed.
        BadInput: there is no such file, or it is no such model.
    """
    try:
        import fasttext
    except ImportError as e:
        raise MissingComponent("fastText", "is not installed", INSTALL) from e
    if not path.is_file():
        raise BadInput(f"language model {path}", "no such file", "or fetch it with --download")
    fasttext.FastText.eprint = lambda *_, **__: None  # it greets on the error stream
    try:
        model = fasttext.load_model(str(path))
        labels = set(model.get_labels())
    except (ValueError, RuntimeError, MemoryError) as e:
        raise BadInput(f"language model {path}", "is no fastText model", "try --download") from e
    if ENGLISH not in labels or len(labels) < 2:
        problem = f"does not tell languages apart: {len(labels)} labels"
        expected = f"expected {ENGLISH} and others"
        raise BadInput(f"language model {path}", f"{problem}, {expected}", "lid.176.ftz does")
    sha256 = hashlib.sha256(path.read_bytes()).hexdigest()
    return LanguageModel(path.name, sha256, len(labels), model)


def download(target: Path, published: Published = LID_176) -> Path:
    """Fetch a published file to ``target`` unless something is there; it appears only when whole.

    Raises:
        MissingComponent: it can't be fetched.
        BadInput: what came is not of the published size and SHA-256; nothing is kept.
    """
    if target.exists():
        return target
    elsewhere = "fetch it on another machine and give --language-model PATH"
    try:
        with urllib.request.urlopen(published.url, timeout=60) as answer:
            content = answer.read(published.n_bytes + 1)
    except (urllib.error.URLError, OSError) as e:
        reason = getattr(e, "reason", e)
        raise MissingComponent(published.url, f"can't be fetched: {reason}", elsewhere) from e
    found = hashlib.sha256(content).hexdigest()
    if len(content) != published.n_bytes or found != published.sha256:
        expected = f"expected {published.n_bytes:,} bytes of SHA-256 {published.sha256[:12]}..."
        problem = f"is not the published file: {expected}, SHA-256 is {found[:12]}..."
        raise BadInput(published.url, problem, elsewhere)
    target.parent.mkdir(parents=True, exist_ok=True)
    part = target.with_name(f"_{target.name}.part")
    part.write_bytes(content)
    os.replace(part, target)
    return target
