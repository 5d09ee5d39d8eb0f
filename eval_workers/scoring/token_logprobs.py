"""Rows of ``token_logprob``: every token's share in a pair's scores, kept on request."""

from __future__ import annotations

from collections.abc import Sequence
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
    tokens = store.read(_TABLE, benchmark=benchmark, model_key=model_key)
    unique = tokens.group_by(["pair_id", "text_id"]).aggregate([])
    return set(zip(unique["pair_id"].to_pylist(), unique["text_id"].to_pylist(), strict=True))


def publish_tokens(
    store: Store,
    model: Backend,
    benchmark: str,
    kept: Sequence[Row],
    scored: Sequence[tuple[Row, Sequence[TextScore]]],
    run_id: str,
) -> None:
    """Add the tokens of pairs just scored to those of the rows of ``pair_score`` that stay.

    ``scored`` are the pairs with their ``text_id``, and the scores of both sentences. Tokens of any
    other pair, or of another text, go.
    """
    partition = {"benchmark": benchmark, "model_key": model.identity.key}
    old = store.read(_TABLE, **partition)
    if not scored and not old.num_rows:
        return
    sides = [
        (pair, side, score)
        for pair, scores in scored
        for side, score in zip("ab", scores, strict=True)
    ]
    pieces = model.pieces({i for _, _, score in sides for i in score.token_ids})
    names = ["pair_id", "text_id"]
    rows = [
        {
            **partition,
            **{name: pair[name] for name in names},
            "side": side,
            "run_id": run_id,
            "position": position,
            "token_id": token_id,
            "token": pieces[token_id],
            "logprob_nats": score.token_logprobs_nats[position],
        }
        for pair, side, score in sides
        for position, token_id in enumerate(score.token_ids)
    ]
    valid = pa.table({n: pa.array([row[n] for row in kept], pa.string()) for n in names})
    schema = TABLES[_TABLE]
    stay = cast(schema, old.join(valid, names, join_type="left semi"))
    order = [(column, "ascending") for column in ("pair_id", "side", "position")]
    new = pa.concat_tables([stay, cast(schema, rows)]).sort_by(order)
    store.replace(_TABLE, new, partition, run_id)
