"""Joins log-probabilities of single texts in a harness's logs to pairs, by their sentences.

Inspect's logs hold texts and their tokens, but no pairs. A pair gets a score if one model scored
both its sentences, in one task or two.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from plumbline.eval_workers.models.model_texts import described
from plumbline.eval_workers.models.scoring_contract import LOG_LIKELIHOOD, as_nats
from plumbline.eval_workers.pairs.released.released_files import grouped
from plumbline.eval_workers.pairs.released.score_import import ImportedScores
from plumbline.eval_workers.scoring.pair_scores import text_id
from plumbline.eval_workers.work.rejects import rejected
from plumbline.eval_workers.work.step import Row
from plumbline.warehouse.errors import BadInput
from plumbline.warehouse.storage.store import Store

#: Log-probabilities of one sentence that differ by at most this count as the same, in nats.
_SAME_NATS = 1e-4
_NO_PAIR = "no pair of the warehouse joins this sentence with another of the logs"
_NO_BOS = "its first token has no log-probability: the model got no BOS (give the task bos=TOKEN)"


@dataclass(frozen=True)
class LoggedText:
    """A text in a log: its file, its row from 1, and its log-probability or its ``problem``."""

    file: str
    row: int
    sentence: str
    logprob_nats: float = math.nan
    n_tokens: int = 0
    problem: str = ""


@dataclass(frozen=True)
class ScoredBy:
    """The texts that one model scored, and its row of ``model``."""

    identity: Row
    texts: Sequence[LoggedText]


def identity(backend: str, model: str, version: str | None, **settings: Any) -> Row:
    """The ``model`` row of a model as a log names it; ``settings`` only change the key."""
    names = {"model": model, "backend": backend, "backend_version": version}
    hashed = json.dumps({**names, **settings}, sort_keys=True)
    key = hashlib.sha256(hashed.encode()).hexdigest()[:16]
    what = {"text_form": "written", "measure": LOG_LIKELIHOOD, **described(model)}
    return {"model_key": key, **names, **what}


def logprob_of(sentence: str, tokens: Sequence[tuple[str, float]]) -> tuple[float, int] | str:
    """Log-probability of a sentence in nats and its number of tokens; or why it has none.

    ``tokens`` are the text's tokens and their log-probabilities. One token after the sentence (EOS,
    or a reply) is left out.

    >>> logprob_of("She ran.", [("She", -1.5), ("ran.", -2.0), ("</s>", -9.0)])
    (-3.5, 2)
    >>> logprob_of("She ran.", [(" ran.", -2.0)])
    'its first token has no log-probability: the model got no BOS (give the task bos=TOKEN)'
    """
    texts = [text for text, _ in tokens]
    for stop in (len(tokens), len(tokens) - 1):
        if _spell(texts[:stop], sentence):
            values = [as_nats(value) for _, value in tokens[:stop]]
            if not all(math.isfinite(value) and value <= 0 for value in values):
                return "a log-probability is not finite, or is above 0"
            return math.fsum(values), len(values)
    lacks_first = _spell(texts, sentence, ".+?")
    return _NO_BOS if lacks_first else "its tokens don't spell the sentence"


def _spell(tokens: Sequence[str], sentence: str, starts: str = "") -> bool:
    """True if tokens spell a sentence, except a beginning that matches the pattern ``starts``.

    White space is ignored. U+FFFD, a token's part of a character, matches one or more characters.
    """
    pieces = re.split("\ufffd+", re.sub(r"\s", "", "".join(tokens)))
    pattern = starts + ".+?".join(map(re.escape, pieces))
    return bool(tokens) and bool(re.fullmatch(pattern, re.sub(r"\s", "", sentence)))


def import_texts(
    store: Store, models: Collection[ScoredBy], run_id: str, fix: str
) -> list[ImportedScores]:
    """Write ``model``, ``pair_score`` and ``reject`` (stage `import`), replacing earlier imports.

    Every text is used or rejected; rejects are counted with the first benchmark of a model. Raises
    ``BadInput`` if no pair of the warehouse has both its sentences among one model's texts. The
    error has the texts' problems and ``fix``; if the texts have no problem of their own, it advises
    to import the benchmark.
    """
    pairs = grouped(store.read("benchmark_pair").to_pylist(), lambda pair: str(pair["benchmark"]))
    joined = [(model, *_joined(model, pairs)) for model in models]
    if not any(scores for _, scores, _ in joined):
        reasons = list(dict.fromkeys(reason for *_, unused in joined for _, reason in unused))
        why = "; ".join(reasons[:3])
        names = ", ".join(sorted(str(model.identity["model"]) for model in models))
        if why == _NO_PAIR:
            fix = "import the benchmark first, or export the task again"
        raise BadInput(f"logs of {names}", f"hold no pair of the warehouse: {why}", fix)
    return [counts for parts in joined for counts in _publish(store, *parts, pairs, run_id)]


def _joined(
    model: ScoredBy, pairs: Mapping[str, Sequence[Row]]
) -> tuple[dict[str, list[Row]], list[tuple[LoggedText, str]]]:
    """Rows of ``pair_score`` by benchmark, and the texts that no row uses, with the reason."""
    texts, unused = _by_sentence(model.texts)
    sides = ("sentence_a", "sentence_b")
    scored = {
        benchmark: [pair for pair in rows if texts.keys() >= {pair[side] for side in sides}]
        for benchmark, rows in pairs.items()
    }
    in_pairs = {pair[side] for rows in scored.values() for pair in rows for side in sides}
    unused += [(text, _NO_PAIR) for sentence, text in texts.items() if sentence not in in_pairs]
    return {b: [_score(pair, texts) for pair in rows] for b, rows in scored.items() if rows}, unused


def _publish(
    store: Store,
    model: ScoredBy,
    scores: Mapping[str, Sequence[Row]],
    unused: Sequence[tuple[LoggedText, str]],
    pairs: Mapping[str, Sequence[Row]],
    run_id: str,
) -> list[ImportedScores]:
    name, key = str(model.identity["model"]), str(model.identity["model_key"])
    reject = {"stage": "import", "subject": key, "run_id": run_id}
    rejects = [
        reject | rejected({"source_file": text.file, "source_row": text.row}, reason, text.sentence)
        for text, reason in unused
    ]
    with store.together(run_id, f"scores of {name}"):
        if scores:
            row = {**model.identity, "run_id": run_id}
            store.publish("model", [row], unit=key, run_id=run_id)
        for benchmark, rows in scores.items():
            common = {"model_key": key, "model": name, "benchmark": benchmark, "run_id": run_id}
            where = {"benchmark": benchmark, "model_key": key}
            store.replace("pair_score", [{**row, **common} for row in rows], where, run_id)
        store.replace("reject", rejects, {"stage": "import", "subject": key}, run_id)
    files = tuple(dict.fromkeys(text.file for text in model.texts))
    if not scores:
        return [outcome(name, "", (), (), len(rejects), files)]
    counted = [(len(rejects), files), *[(0, ())] * (len(scores) - 1)]
    return [
        outcome(name, benchmark, pairs[benchmark], rows, *of_files)
        for (benchmark, rows), of_files in zip(scores.items(), counted, strict=True)
    ]


def outcome(
    model: str,
    benchmark: str,
    pairs: Iterable[Row],
    scores: Sequence[Row],
    n_rejected: int,
    files: tuple[str, ...],
) -> ImportedScores:
    """Counts of an import; ``n_pairs`` leaves out pairs marked unnatural that have no score."""
    natural = {pair["pair_id"] for pair in pairs if pair["is_natural"] is not False}
    scored = {row["pair_id"] for row in scores}
    n_pairs, n_missing = len(natural | scored), len(natural - scored)
    return ImportedScores(model, benchmark, n_pairs, len(scored), n_rejected, n_missing, files)


def _by_sentence(
    texts: Sequence[LoggedText],
) -> tuple[dict[str, LoggedText], list[tuple[LoggedText, str]]]:
    """The text to use for each sentence, and the unused texts with the reason."""
    text_of: dict[str, LoggedText] = {}
    unused = [(text, text.problem) for text in texts if text.problem]
    usable = (text for text in texts if not text.problem)
    for sentence, rows in grouped(usable, lambda text: text.sentence).items():
        values = [text.logprob_nats for text in rows]
        rest, reason = rows, f"the sentence has {len(rows)} rows with different figures"
        if max(values) - min(values) <= _SAME_NATS:
            text_of[sentence], *rest = rows
            reason = f"the sentence has {len(rows)} rows, of which the first is used"
        unused += [(text, reason) for text in rest]
    return text_of, unused


def _score(pair: Row, texts: Mapping[str, LoggedText]) -> Row:
    row: Row = {"pair_id": pair["pair_id"], "text_id": text_id(pair)}
    for side in "ab":
        text = texts[pair[f"sentence_{side}"]]
        row[f"logprob_{side}_nats"], row[f"n_tokens_{side}"] = text.logprob_nats, text.n_tokens
    return row
