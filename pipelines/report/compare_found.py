"""What the page of `plumbline disclosure compare` reads, and the queries that give it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from plumbline.pipelines.report.model import Row
from plumbline.pipelines.report.queries import literal
from plumbline.warehouse.query.connection import connect

if TYPE_CHECKING:
    from plumbline.pipelines.compare_order import Order

MEASURES = {
    "gas": "GAS",
    "gas_f": "GAS, female",
    "gas_m": "GAS, male",
    "gld": "GLD",
    "add_nats": "ADD, nats",
    "p_gendered": "P(gendered word)",
}


@dataclass(frozen=True)
class Found:
    """Rows of the comparison's macros: all that is on the page, in its order.

    ``whole`` are those of whole sets, ``topics`` of their parts; ``tuning`` is the adapter's, if it
    was tuned here. ``queries`` gives the query of each by its name.
    """

    whole: list[Row]
    topics: list[Row]
    preference: list[Row]
    perplexity: list[Row]
    fairpair: list[Row]
    tuning: Row | None
    queries: Mapping[str, str]

    @property
    def headline(self) -> list[Row]:
        """Whole sets that the adapter was not tuned on, as far as is known."""
        return [r for r in self.whole if not r["n_tuned_on"]]


def read_found(order: Order) -> Found:
    """Ask the warehouse all that the page needs: only what is asked of both sides."""
    queries = _queries(order)
    with connect(order.warehouse) as connection:
        rows: dict[str, list[Any]] = {
            name: connection.sql(query).to_arrow_table().to_pylist()
            for name, query in queries.items()
        }
    tuned = rows.pop("tuning")
    return Found(**rows, tuning=tuned[0] if tuned else None, queries=queries)


def _queries(order: Order) -> dict[str, str]:
    """A query a field of ``Found``."""
    keys = f"({literal(order.before.key)}, {literal(order.after.key)})"
    sampled, measured = literal(order.sampling.key), literal(order.fairpair.sampling().key)
    text_set = order.held_out.name if order.held_out else None
    measures, benchmarks = literal(list(MEASURES)), literal(list(order.benchmarks))
    disclosure = (
        f"FROM disclosure_difference{keys}\n"
        f"WHERE word_list = {literal(order.word_list_name)} AND instruction_key = 'none'\n"
        f"    AND (sampling_key IS NULL OR sampling_key = {sampled})\n"
        "    AND topic IS {}\n"
        f"ORDER BY probe_set, topic, list_position({measures}, measure);"
    )
    return {
        "whole": disclosure.format("NULL"),
        "topics": disclosure.format("NOT NULL"),
        "preference": (
            f"FROM preference_difference{keys}\n"
            f"WHERE list_contains({benchmarks}::VARCHAR[], benchmark)\n"
            "ORDER BY benchmark, measure;"
        ),
        "perplexity": (
            f"FROM perplexity_difference{keys}\n"
            f"WHERE text_set = {literal(text_set)}\nORDER BY window_tokens;"
        ),
        "fairpair": (
            f"FROM fairpair_difference{keys}\n"
            f"WHERE probe_set = {literal(order.asked.fairpair)} AND sampling_key = {measured}\n"
            "ORDER BY ALL;"
        ),
        "tuning": (
            "SELECT * EXCLUDE (path) FROM tuning\n"
            f"WHERE adapter = {literal(order.after.adapter)}\nORDER BY ALL LIMIT 1;"
        ),
    }
