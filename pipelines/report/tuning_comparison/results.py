"""The queries of `plumbline disclosure compare` and their rows."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from plumbline.pipelines.report.rows import Row, Rows, literal, with_ends
from plumbline.warehouse.query.connection import arrow_rows, connect

if TYPE_CHECKING:
    from plumbline.eval_workers.models.scoring_contract import Identity

MEASURES = {
    "gas": "GAS",
    "gas_f_of_all": "GAS, female",
    "gas_m_of_all": "GAS, male",
    "gld": "GLD",
    "add_nats": "ADD, nats",
    "p_gendered": "P(gendered word)",
}


@dataclass(frozen=True)
class ComparedModels:
    """A comparison: both models, the data on which they were measured, and the command line.

    ``greedy_key`` and ``fairpair_key`` are the sampling keys of GAS and of FairPair's set.
    """

    warehouse: Path
    command: str
    before: Identity
    after: Identity
    word_list: str
    sets: tuple[str, ...]
    benchmarks: tuple[str, ...]
    greedy_key: str
    fairpair: str
    fairpair_key: str
    text_set: str | None


@dataclass(frozen=True)
class Results:
    """Rows of the comparison's macros, in the page's order.

    ``disclosure`` has rows of whole sets (their ``topic`` is NULL) and of topics. ``tuning`` has
    the adapter's row if it was tuned in this warehouse.
    """

    disclosure: Rows
    preference: Rows
    perplexity: Rows
    fairpair: Rows
    tuning: Rows

    def changes(self) -> list[Row]:
        """A row for each figure over whole sets that both models have."""
        whole = self.disclosure.where(topic=None)
        return [
            *(_change(r, r["probe_set"], r["measure"], "mean") for r in whole),
            *(_change(r, r["benchmark"], r["measure"], "mean") for r in self.preference),
            *(_change(r, r["text_set"], "perplexity", "perplexity") for r in self.perplexity),
            *(
                _change(r, r["probe_set"], f"F, {r['phi']}, {r['side']}", "f")
                for r in self.fairpair
            ),
        ]


def _change(row: Row, subject: str, measure: str, figure: str) -> Row:
    """A figure before and after. Its difference and interval are ``None`` unless it is a mean."""
    change = {"of": subject, "measure": measure}
    change |= {when: row[f"{when}_{figure}"] for when in ("before", "after")}
    ends = with_ends("difference")
    return change | {end: row[end] if figure == "mean" else None for end in ends}


def read_results(order: ComparedModels) -> Results:
    """The rows that the page needs, for measurements of both models."""
    queries = _queries(order)
    with connect(order.warehouse, "".join(queries.values())) as connection:
        return Results(
            **{
                name: Rows(arrow_rows(connection, text).to_pylist(), text)
                for name, text in queries.items()
            }
        )


def _queries(order: ComparedModels) -> dict[str, str]:
    """A query for each field of ``Results``."""
    keys = f"({literal(order.before.key)}, {literal(order.after.key)})"
    gas_key, fairpair_key = literal(order.greedy_key), literal(order.fairpair_key)
    measures, benchmarks = literal(list(MEASURES)), literal(list(order.benchmarks))
    return {
        "disclosure": (
            f"FROM disclosure_difference{keys}\n"
            f"WHERE word_list = {literal(order.word_list)} AND instruction_key = 'none'\n"
            f"    AND (sampling_key IS NULL OR sampling_key = {gas_key})\n"
            f"ORDER BY probe_set, topic, list_position({measures}, measure);"
        ),
        "preference": (
            f"FROM preference_difference{keys}\n"
            f"WHERE list_contains({benchmarks}::VARCHAR[], benchmark)\n"
            "ORDER BY benchmark, groups, measure;"
        ),
        "perplexity": (
            f"FROM perplexity_difference{keys}\n"
            f"WHERE text_set = {literal(order.text_set)}\nORDER BY window_tokens;"
        ),
        "fairpair": (
            f"FROM fairpair_difference{keys}\n"
            f"WHERE probe_set = {literal(order.fairpair)} AND sampling_key = {fairpair_key}\n"
            "    AND texts = 'filtered'\nORDER BY ALL;"
        ),
        "tuning": (
            "SELECT * EXCLUDE (path) FROM tuning\n"
            f"WHERE adapter = {literal(order.after.adapter)}\nORDER BY ALL LIMIT 1;"
        ),
    }
