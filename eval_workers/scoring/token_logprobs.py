"""Rows of ``token_logprob``: every token's share in a pair's scores, kept on request."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from plumbline.warehouse.schema.catalog import TABLES
from plumbline.warehouse.storage.store import Store, cast

if TYPE_CHECKING:
    from plumbline.eval_workers.models.base import Backend, TextScore

Row = dict[str, Any]


_TABLE = "token_logprob"


def pairs_with_tokens(store: Store, model_key: str, benchmark: str) -> set[tuple[str, str]]:
    """``pair_id`` and ``text_id`` of the pairs whose tokens are kept."""
    found = store.read(_TABLE, benchmark=benchmark, model_key=model_key)
    unique = found.group_by(["pair_id", "text_id"]).aggregate([])
    return set(zip(unique["pair_id"].to_pylist(), unique["text_id"].to_pylist(), strict=True))


def publish_tokens(
    store: Store,
    model: Backend,
    benchmark: str,
    kept: Sequence[Row],
    scored: Sequence[tuple[Row, Sequence[TextScore]]],
    run_id: str,
) -> None:
    """Put the tokens of pairs just scored beside those of the rows of ``pair_score`` that stay.

    ``scored`` are the pairs with their ``text_id``, and the scores of both sentences. Tokens of any
    other pair, or of another text, go.
    """
    partition = {"benchmark": benchmark, "model_key": model.identity.key}
    found = store.read(_TABLE, **partition)
    if not scored and not found.num_rows:
        return
    sides = [
        (pair, side, score)
        for pair, scores in scored
        for side, score in zip("ab", scores, strict=True)
    ]
    pieces = model.pieces({i for _, _, score in sides for i in score.token_ids})
    rows = [
        {
            **partition,
            **{name: pair[name] for name in ("pair_id", "text_id")},
            **{"side": side, "run_id": run_id},
            **token,
        }
        for pair, side, score in sides
        for token in _tokens(score, pieces)
    ]
    both = pa.concat_tables([_of_rows(found, kept), cast(TABLES[_TABLE], rows)])
    order = [(column, "ascending") for column in ("pair_id", "side", "position")]
    store.replace(_TABLE, both.sort_by(order), partition, run_id)


def _tokens(score: TextScore, pieces: Mapping[int, str]) -> list[Row]:
    values = zip(score.token_ids, score.token_logprobs_nats, strict=True)
    return [
        {"position": position, "token_id": i, "token": pieces[i], "logprob_nats": logprob}
        for position, (i, logprob) in enumerate(values)
    ]


def _of_rows(found: pa.Table, kept: Sequence[Row]) -> pa.Table:
    """Those token rows that belong to rows of ``pair_score``, by pair and text."""
    names = ("pair_id", "text_id")
    wanted = pa.table({n: pa.array([row[n] for row in kept], pa.string()) for n in names})
    return cast(TABLES[_TABLE], found.join(wanted, list(names), join_type="left semi"))
