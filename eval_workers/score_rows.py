"""Rows of ``pair_score`` and ``reject`` from the scores of sentences."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from plumbline.eval_workers.chunks import texts_hash
from plumbline.eval_workers.rejects import reject_row
from plumbline.eval_workers.token_rows import Sentences

if TYPE_CHECKING:
    from plumbline.eval_workers.backends.base import TextScore

Row = dict[str, Any]


def text_id(pair: Row) -> str:
    """Hash of both sentences as they are scored (16 hex digits).

    >>> pair = {"sentence_f": "She ran.", "sentence_m": "He ran."}
    >>> text_id(pair) == text_id({**pair, "sentence_m": "He ran!"})
    False
    """
    return texts_hash([pair["sentence_f"], pair["sentence_m"]])


def score_rows(
    pairs: list[Row], scores: dict[str, TextScore], identity: Row
) -> tuple[list[Row], list[Row]]:
    """Rows of ``pair_score``, and of ``reject`` for pairs with a sentence that has no score."""
    scored, rejects = [], []
    for pair in pairs:
        f, m = scores[pair["sentence_f"]], scores[pair["sentence_m"]]
        if f.problem or m.problem:
            rejects.append({**_reject(pair, f, m, identity), "run_id": identity["run_id"]})
            continue
        scored.append(
            {
                **identity,
                "benchmark": pair["benchmark"],
                "pair_id": pair["pair_id"],
                "text_id": text_id(pair),
                "logprob_f_nats": f.logprob_nats,
                "logprob_m_nats": m.logprob_nats,
                "n_tokens_f": f.n_tokens,
                "n_tokens_m": m.n_tokens,
            }
        )
    return scored, rejects


def sentences(
    pairs: list[Row], new: list[Row], scores: dict[str, TextScore]
) -> dict[str, Sentences]:
    """Both scores of the pairs that have new rows."""
    by_id = {pair["pair_id"]: pair for pair in pairs}
    return {
        row["pair_id"]: Sentences(
            row["text_id"], *(scores[by_id[row["pair_id"]][f"sentence_{side}"]] for side in "fm")
        )
        for row in new
    }


def _reject(pair: Row, f: TextScore, m: TextScore, identity: Row) -> dict[str, object]:
    which, score = ("female", f) if f.problem else ("male", m)
    row = reject_row(
        stage="score",
        subject=f"{identity['model_key']}/{pair['benchmark']}",
        source_file=pair["source_file"],
        source_row=pair["source_row"],
        reason=f"pair {pair['pair_id']}, {which} sentence: {score.problem}",
        excerpt=pair["sentence_f"] if f.problem else pair["sentence_m"],
    )
    return row | {"text_id": text_id(pair)}
