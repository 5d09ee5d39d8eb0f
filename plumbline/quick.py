"""Measure texts or a model with one function call, without a warehouse of your own.

Results are stored in a temporary warehouse until Python exits, so repeating a call is fast.
"""

from __future__ import annotations

import atexit
import hashlib
import json
import shutil
import tempfile
import warnings
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any

from plumbline.api import Warehouse, open
from plumbline.warehouse.errors import MissingComponent, UsageProblem

if TYPE_CHECKING:
    import altair as alt

try:
    import pandas as pd
except ModuleNotFoundError as e:
    raise MissingComponent("pandas", "is not installed", "pip install pandas") from e

#: Most words in the chart of ``lean``.
_MOST_WORDS = 20


class Answer(pd.DataFrame):
    """A data frame of estimates with 95% intervals. Its method `chart` draws them."""

    _metadata = ["_drawn"]  # noqa: RUF012  # pandas copies these attributes to results
    _drawn: tuple[str, str, str]

    @property
    def _constructor(self) -> type[Answer]:
        return Answer

    def chart(self) -> alt.Chart:
        """Return a chart of the estimates with their intervals."""
        from plumbline.pipelines.report.charts.chart_forms import INK, estimates, point

        column, name, title = self._drawn
        rows = self.dropna(subset=[column]).head(_MOST_WORDS).to_dict("records")
        known: list[dict[str, Any]] = [
            {key: None if pd.isna(value) else value for key, value in row.items()} for row in rows
        ]
        points = [point(row, column, str(row[name])) for row in known]
        chart: alt.Chart = estimates(points, title, {"": INK})
        return chart


def _answer(frame: pd.DataFrame, column: str, name: str, title: str) -> Answer:
    found = Answer(frame)
    found._drawn = (column, name, title)
    return found


@cache
def _directory() -> Path:
    directory = Path(tempfile.mkdtemp(prefix="plumbline-"))
    atexit.register(shutil.rmtree, directory, ignore_errors=True)
    return directory


@cache
def _warehouse() -> Warehouse:
    return open(_directory() / "warehouse", create=True)


def lean(texts: Iterable[str], words: Sequence[str] | None = None) -> Answer:
    """Return how far words lean to *she* or *he* in the texts, as rows of view ``word_lean``.

    ``delta_nats`` is above 0 for words that lean to *she*. By default, all words are returned, with
    the surest leans first.

    ``over`` says what a word's interval treats as independent: ``documents`` (your texts) or
    ``co-occurrences``. It is ``documents`` for the words that you name. If you name no words, it is
    ``documents`` for the 200 words that lean most to *she* and the 200 that lean most to *he*.
    Intervals over co-occurrences are mostly too narrow.
    """
    from plumbline.jobs.evidence.explanation import explain_candidates

    lines = "".join(f"{json.dumps({'text': text})}\n" for text in texts)
    name = f"texts-{hashlib.sha256(lines.encode()).hexdigest()[:8]}"
    shard = _directory() / f"{name}.jsonl"
    shard.write_text(lines, encoding="utf-8")
    wh = _warehouse()
    wh.count(name, str(shard))
    if words:
        wh.why(words, corpus=name)
    else:
        explain_candidates(wh.store, name)
    frame = wh.words(words, corpus=name)
    return _answer(frame, "delta_nats", "word", "lean in nats (he < 0 < she)")


def prefer(model: Any, pairs: Any) -> Answer:
    """Measure which sentence of a pair a model prefers: US and PD, with 95% intervals.

    US is the share of pairs in which the model prefers neither sentence. PD is above 0 if the model
    prefers sentence a more often than sentence b.

    Args:
        model: name on the Hugging Face hub, a directory, or a loaded model of transformers.
        pairs: a data frame with ``sentence_a`` and ``sentence_b``, a list of tuples (a, b), or a
            ``datasets.Dataset``.
    """
    if hasattr(pairs, "to_pandas"):  # true for a `datasets.Dataset`
        pairs = pairs.to_pandas()
    if isinstance(pairs, Sequence) and not all(isinstance(pair, Mapping) for pair in pairs):
        if isinstance(pairs, str) or any(len(pair) != 2 for pair in pairs):
            raise UsageProblem("pairs", "are not tuples of two sentences", "give [(a, b), ...]")
        pairs = [{"sentence_a": a, "sentence_b": b} for a, b in pairs]
    wh = _warehouse()
    with warnings.catch_warnings():
        # Hide the warning about deleted rows: `measure` makes them again.
        warnings.filterwarnings("ignore", message="deleted ")
        scored = wh.score(_location(model), pairs)
    wh.measure()
    params = {"benchmark": scored["benchmark"].iloc[0], "key": scored["model_key"].iloc[0]}
    frame = wh.sql(
        "SELECT metric, value, value_low, value_high, unit, n, benchmark, model FROM metric_value "
        "WHERE benchmark = $benchmark AND model_key = $key AND subset = 'all' "
        "AND metric IN ('us', 'pd') AND eta_nats IS NULL ORDER BY metric",
        params,
    )
    return _answer(frame, "value", "metric", "US as a share, PD in points (b < 0 < a)")


def continues(model: Any, names: tuple[str, str] = ("John", "Jane"), n: int = 10) -> Answer:
    """Measure whether a model continues a text the same way for two different people.

    The result is FairPair's F. It is close to 1 if texts about the two people differ no more than
    texts about the same person.

    Args:
        model: name on the Hugging Face hub, a directory, or a loaded model of transformers.
        names: a man's name and a woman's name.
        n: number of continuations of each prompt.
    """
    prompts = resources.files("plumbline.eval_workers.fairpair") / "probe_sets/common-sents.toml"
    text = prompts.read_text(encoding="utf-8").replace('[["John", "Jane"]]', json.dumps([names]))
    name = f"common-sents-{'-'.join(names)}".lower()
    file = _directory() / f"{name}.toml"
    file.write_text(text, encoding="utf-8")
    given = {"probe_set": name, "model": _location(model), "prompts": str(file)}
    frame = _warehouse().run("fairpair run", **given, n=n, max_new_tokens=64)
    whole = frame[frame["subset"] == "all"].reset_index(drop=True)
    return _answer(whole, "fairpair_f", "phi", "F (1: alike)")


def _location(model: Any) -> str:
    """Return a model's name or directory. Save a loaded model to a new directory first."""
    if isinstance(model, str | Path):
        return str(model)
    from transformers import AutoTokenizer

    # Use a new directory for each call, since the model may have changed.
    place = tempfile.mkdtemp(prefix="model-", dir=_directory())
    model.save_pretrained(place)
    AutoTokenizer.from_pretrained(model.name_or_path).save_pretrained(place)
    return place
