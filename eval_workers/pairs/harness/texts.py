"""Log-probabilities of single texts in the logs of a harness, joined to pairs by their sentences.

Inspect logs a text and its tokens, not a pair. A pair is scored where both its sentences were,
whatever task they were in.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from plumbline.eval_workers.models.base import LOG_LIKELIHOOD
from plumbline.eval_workers.pairs.released.scores import ImportedScores
from plumbline.eval_workers.scoring.pair_scores import text_id
from plumbline.eval_workers.work.rejects import reject_row
from plumbline.eval_workers.work.step import Row
from plumbline.warehouse.errors import BadInput
from plumbline.warehouse.storage.store import Store

#: Largest difference of two figures of one sentence that count as one, in nats.
_SAME_NATS = 1e-4
_OTHER = "no pair of the warehouse has this sentence and its other one in the logs"
_NO_BOS = "its first token has no log-probability: the model got no BOS (give the task bos=TOKEN)"


@dataclass(frozen=True)
class Scored:
    """A text in a log: its file and row from 1, and its figure, or why it has none."""

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
    texts: Sequence[Scored]


def identity(backend: str, model: str, version: str | None, **how: Any) -> Row:
    """The ``model`` row of a model as a log names it; ``how`` it was run is part of the key."""
    known = {"model": model, "backend": backend, "backend_version": version}
    hashed = json.dumps({**known, **how}, sort_keys=True)
    key = hashlib.sha256(hashed.encode()).hexdigest()[:16]
    return {"model_key": key, **known, "text_form": "written", "measure": LOG_LIKELIHOOD}


def figure(sentence: str, tokens: Sequence[tuple[str, float]]) -> tuple[float, int] | str:
    """Log-probability of a sentence in nats and its number of tokens, or why there is none.

    ``tokens`` are those of the text and their log-probabilities. One behind the sentence (EOS, or a
    reply) doesn't count.

    >>> figure("She ran.", [("She", -1.5), ("ran.", -2.0), ("</s>", -9.0)])
    (-3.5, 2)
    >>> figure("She ran.", [(" ran.", -2.0)])
    'its first token has no log-probability: the model got no BOS (give the task bos=TOKEN)'
    """
    texts = [text for text, _ in tokens]
    for stop in (len(tokens), len(tokens) - 1):
        if _spell(texts[:stop], sentence):
            values = [value for _, value in tokens[:stop]]
            if not all(math.isfinite(value) and value <= 0 for value in values):
                return "a log-probability is not a finite number, 0 or less"
            return math.fsum(values), len(values)
    lacks_first = _spell(texts, sentence, ".+?")
    return _NO_BOS if lacks_first else "its tokens don't spell the sentence"


def _spell(tokens: Sequence[str], sentence: str, starts: str = "") -> bool:
    """Whether tokens spell a sentence; white space and parts of a character can be lost in them."""
    pieces = re.split("\ufffd+", re.sub(r"\s", "", "".join(tokens)))
    pattern = starts + ".+?".join(map(re.escape, pieces))
    return bool(tokens) and bool(re.fullmatch(pattern, re.sub(r"\s", "", sentence)))


def import_texts(
    store: Store, models: Collection[ScoredBy], run_id: str, fix: str
) -> list[ImportedScores]:
    """Write ``model``, ``pair_score`` and ``reject`` (stage `import`), replacing earlier imports.

    Every text is used or rejected; rejects are counted with the first benchmark of a model. Raises
    ``BadInput`` where no pair of the warehouse has both its sentences among one model's texts,
    with the reasons why texts have no figure and ``fix``, or else that the benchmark is missing.
    """
    pairs: dict[str, list[Row]] = {}
    for pair in store.read("benchmark_pair").to_pylist():
        pairs.setdefault(pair["benchmark"], []).append(pair)
    joined = [(model, *_joined(model, pairs)) for model in models]
    if not any(scores for _, scores, _ in joined):
        reasons = list(dict.fromkeys(reason for *_, unused in joined for _, reason in unused))
        why = "; ".join(reasons[:3])
        names = ", ".join(sorted(str(model.identity["model"]) for model in models))
        if why == _OTHER:
            fix = "import the benchmark first, or export the task again"
        raise BadInput(f"logs of {names}", f"hold no pair of the warehouse: {why}", fix)
    return [one for parts in joined for one in _publish(store, *parts, pairs, run_id)]


def _joined(
    model: ScoredBy, pairs: Mapping[str, Sequence[Row]]
) -> tuple[dict[str, list[Row]], list[tuple[Scored, str]]]:
    """Rows of ``pair_score`` by benchmark, and the texts that are in none."""
    found, unused = _by_sentence(model.texts)
    whole = {b: [pair for pair in of if _has_both(pair, found)] for b, of in pairs.items()}
    of_pairs = {pair[f"sentence_{s}"] for of in whole.values() for pair in of for s in "ab"}
    unused += [(one, _OTHER) for text, one in found.items() if text not in of_pairs]
    return {b: [_score(pair, found) for pair in of] for b, of in whole.items() if of}, unused


def _publish(
    store: Store,
    model: ScoredBy,
    scores: Mapping[str, Sequence[Row]],
    unused: Sequence[tuple[Scored, str]],
    pairs: Mapping[str, Sequence[Row]],
    run_id: str,
) -> list[ImportedScores]:
    name, key = str(model.identity["model"]), str(model.identity["model_key"])
    rejects = [{**_reject(one, reason, key), "run_id": run_id} for one, reason in unused]
    with store.together(run_id, f"scores of {name}"):
        if scores:
            row = {**model.identity, "run_id": run_id}
            store.publish("model", [row], unit=key, run_id=run_id)
        for benchmark, rows in scores.items():
            common = {"model_key": key, "model": name, "benchmark": benchmark, "run_id": run_id}
            where = {"benchmark": benchmark, "model_key": key}
            store.replace("pair_score", [{**row, **common} for row in rows], where, run_id)
        store.replace("reject", rejects, {"stage": "import", "subject": key}, run_id)
    files = tuple(dict.fromkeys(one.file for one in model.texts))
    if not scores:
        return [ImportedScores(name, "", 0, 0, len(rejects), 0, files)]
    done = []
    for k, (benchmark, rows) in enumerate(scores.items()):
        scored = {row["pair_id"] for row in rows}
        natural = {p["pair_id"] for p in pairs[benchmark] if p["is_natural"] is not False}
        counts = (len(natural | scored), len(scored), 0 if k else len(rejects))
        missing = len(natural - scored)
        done.append(ImportedScores(name, benchmark, *counts, missing, () if k else files))
    return done


def _by_sentence(texts: Sequence[Scored]) -> tuple[dict[str, Scored], list[tuple[Scored, str]]]:
    """The text to use for each sentence, and the others with the reason."""
    found: dict[str, list[Scored]] = {}
    unused = [(one, one.problem) for one in texts if one.problem]
    for one in texts:
        if not one.problem:
            found.setdefault(one.sentence, []).append(one)
    used: dict[str, Scored] = {}
    for sentence, rows in found.items():
        values = [one.logprob_nats for one in rows]
        if max(values) - min(values) <= _SAME_NATS:
            used[sentence] = rows[0]
            reason = f"the sentence has {len(rows)} rows, of which the first is used"
            unused += [(one, reason) for one in rows[1:]]
        else:
            reason = f"the sentence has {len(rows)} rows with different figures"
            unused += [(one, reason) for one in rows]
    return used, unused


def _has_both(pair: Row, found: Mapping[str, Scored]) -> bool:
    return pair["sentence_a"] in found and pair["sentence_b"] in found


def _score(pair: Row, found: Mapping[str, Scored]) -> Row:
    row: Row = {"pair_id": pair["pair_id"], "text_id": text_id(pair)}
    for side in "ab":
        one = found[pair[f"sentence_{side}"]]
        row[f"logprob_{side}_nats"], row[f"n_tokens_{side}"] = one.logprob_nats, one.n_tokens
    return row


def _reject(one: Scored, reason: str, subject: str) -> Row:
    return reject_row(
        stage="import",
        subject=subject,
        source_file=one.file,
        source_row=one.row,
        reason=reason,
        excerpt=one.sentence,
    )
