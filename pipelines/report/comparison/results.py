"""What the page of `plumbline disclosure compare` reads, and the queries that give it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from plumbline.pipelines.report.rows import Rows, literal
from plumbline.warehouse.query.connection import connect

if TYPE_CHECKING:
    from plumbline.pipelines.requests.compare import CompareRequest

MEASURES = {
    "gas": "GAS",
    "gas_f_of_all": "GAS, female",
    "gas_m_of_all": "GAS, male",
    "gld": "GLD",
    "add_nats": "ADD, nats",
    "p_gendered": "P(gendered word)",
}


@dataclass(frozen=True)
class Results:
    """Rows of the comparison's macros: all that is on the page, in its order.

    ``disclosure`` is of whole sets (no ``topic``) and of their parts; ``tuning`` is the adapter's,
    if it was tuned here.
    """

    disclosure: Rows
    preference: Rows
    perplexity: Rows
    fairpair: Rows
    tuning: Rows


def read_results(order: CompareRequest) -> Results:
    """Read all that the page needs: only what was measured of both sides."""
    queries = _queries(order)
    with connect(order.warehouse, "".join(queries.values())) as connection:
        return Results(
            **{
                name: Rows(connection.sql(text).to_arrow_table().to_pylist(), text)
                for name, text in queries.items()
            }
        )


def _queries(order: CompareRequest) -> dict[str, str]:
    """A query for each field of ``Results``."""
    keys = f"({literal(order.before.key)}, {literal(order.after.key)})"
    sampled, measured = literal(order.sampling.key), literal(order.fairpair.sampling().key)
    text_set = order.held_out.name if order.held_out else None
    measures, benchmarks = literal(list(MEASURES)), literal(list(order.benchmarks))
    return {
        "disclosure": (
            f"FROM disclosure_difference{keys}\n"
            f"WHERE word_list = {literal(order.word_list_name)} AND instruction_key = 'none'\n"
            f"    AND (sampling_key IS NULL OR sampling_key = {sampled})\n"
            f"ORDER BY probe_set, topic, list_position({measures}, measure);"
        ),
        "preference": (
            f"FROM preference_difference{keys}\n"
            f"WHERE list_contains({benchmarks}::VARCHAR[], benchmark)\n"
            "ORDER BY benchmark, groups, measure;"
        ),
        "perplexity": (
            f"FROM perplexity_difference{keys}\n"
            f"WHERE text_set = {literal(text_set)}\nORDER BY window_tokens;"
        ),
        "fairpair": (
            f"FROM fairpair_difference{keys}\n"
            f"WHERE probe_set = {literal(order.choices.fairpair)} AND sampling_key = {measured}\n"
            "    AND texts = 'filtered'\nORDER BY ALL;"
        ),
        "tuning": (
            "SELECT * EXCLUDE (path) FROM tuning\n"
            f"WHERE adapter = {literal(order.after.adapter)}\nORDER BY ALL LIMIT 1;"
        ),
    }
