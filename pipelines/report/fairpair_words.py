"""What FairPair's figures say, in sentences."""

from __future__ import annotations

import json
from collections.abc import Sequence

from plumbline.pipelines.report.facts import Facts
from plumbline.pipelines.report.model import Lead, Row, shown

#: Level of the tests that the sentences go by, before and after correction.
ALPHA = 0.05
#: F's interval has to end this close to 1 for "no more"; else it is "not shown to differ".
_CLOSE = 0.05
#: F this close to 1 is shown with three digits after the point, else with two.
_NEAR = 0.1
#: Prompts named, and models of a set described one by one.
_NAMED, _ONE_BY_ONE = 5, 4
_IN = {"jaccard": "in words", "vader": "in sentiment"}
#: What tells one sampled and perturbed set from another.
SET = ("probe_set", "model_key", "sampling_key", "perturber")
#: What tells one of its measures from another.
MEASURE = (*SET, "phi", "n_folds", "side")


def same(row: Row, other: Row, columns: Sequence[str] = SET) -> bool:
    """Whether two rows are about the same: equal in the columns."""
    return all(row[c] == other[c] for c in columns)


def whom(row: Row) -> str:
    """Whom a side's texts are about instead of whom.

    >>> whom({"side": "original", "entity": "John", "perturbed_entity": "Jane"})
    'Jane instead of John'
    >>> whom({"side": "original", "entity": None, "perturbed_entity": None})
    'the counterpart instead of the one named'
    """
    if row["entity"] is None or row["perturbed_entity"] is None:
        first, second = "the one named", "the counterpart"
    else:
        first, second = row["entity"], row["perturbed_entity"]
    pair = (second, first) if row["side"] == "original" else (first, second)
    return f"{pair[0]} instead of {pair[1]}"


def measure(row: Row) -> str:
    """The scoring function and its folds, as a heading has them.

    >>> measure({"phi": "jaccard", "n_folds": 0}), measure({"phi": "vader", "n_folds": 20})
    ('jaccard', 'vader, 20 folds')
    """
    return f"{row['phi']}, {row['n_folds']} folds" if row["n_folds"] else str(row["phi"])


def probability(p: float | None) -> str:
    """A p-value with two digits that count; ``None`` is a dash.

    >>> probability(0.0312), probability(0.4), probability(None)
    ('0.031', '0.4', '–')
    """
    return "–" if p is None else f"{p:.2g}".replace("-", "−")


def with_interval(row: Row) -> str:
    """F and its interval, the latter where there is one; near 1 with a digit more.

    >>> with_interval({"fairpair_f": 1.0, "ci_low": 0.9812, "ci_high": 1.02})
    '1.000, 0.981 to 1.020'
    >>> with_interval({"fairpair_f": 1.5, "ci_low": None, "ci_high": None})
    '1.50'
    """
    f, digits = row["fairpair_f"], 2
    if f is not None and abs(f - 1) < _NEAR:
        digits = 3
    if f is None or row["ci_low"] is None or row["ci_high"] is None:
        return shown(f, digits)
    low, high = (shown(row[end], digits) for end in ("ci_low", "ci_high"))
    return f"{shown(f, digits)}, {low} to {high}"


def differs(row: Row) -> bool:
    """Whether the permutation test over a set's prompts finds that its groups differ."""
    return row["p_permutation"] is not None and row["p_permutation"] <= ALPHA


def verdict(row: Row) -> str:
    """A row of ``fairpair_set`` (subset `all`) as a sentence."""
    where = f"the same prompt about {whom(row)}"
    n_prompts, kind = row["n_prompts"], _IN.get(row["phi"], f"by {row['phi']}")
    if row["p_permutation"] is None:
        return (
            f"Nothing can be said of {row['model']} after {where} ({measure(row)}): none of "
            f"{row['n_left_out']:,} prompts has two valid samples on each side."
        )
    if differs(row):
        how = f"differ more {kind} than"
    elif row["ci_high"] is not None and row["ci_high"] <= 1 + _CLOSE:
        how = f"differ no more {kind} than"
    else:
        how = f"are not shown to differ more {kind} than"
    f = f"F = {with_interval(row)}" if row["fairpair_f"] is not None else "F not defined"
    notes = [f"{n_prompts:,} prompt{'' if n_prompts == 1 else 's'}"]
    if row["ci_high"] is not None:
        level = json.loads(row["options"]).get("level", 0.95)
        notes.append(f"{100 * level:g}% interval")
    return (
        f"After {where}, {row['model']}'s continuations {how} two continuations of the same prompt "
        f"do ({measure(row)}: {f}; p = {probability(row['p_permutation'])}; {', '.join(notes)})."
    )


def which(prompts: Sequence[Row]) -> str:
    """How many of a set's prompts differ after correction, and which ones most.

    ``prompts`` are rows of one set, measure and side; those without a p-value are not tested.
    """
    tested = [row for row in prompts if row["p_adjusted"] is not None]
    if not tested:
        return ""
    clear = [row for row in tested if row["p_adjusted"] <= ALPHA]
    clear.sort(key=lambda r: (-(r["fairpair_f"] or 0), r["prompt_id"]))
    told = f"{len(clear):,} of {len(tested):,} prompts differ after correction"
    told += f" (Benjamini-Hochberg at {100 * ALPHA:g}%)"
    if not clear:
        return f"{told}."
    named = ", ".join(f"{r['prompt']} (F = {shown(r['fairpair_f'])})" for r in clear[:_NAMED])
    return f"{told}{', most of all' if len(clear) > _NAMED else ':'} {named}."


def main_rows(rows: Sequence[Row]) -> list[Row]:
    """Of each set and measure the row of one side, `original` where it was measured."""
    kept: dict[tuple[object, ...], Row] = {}
    for row in sorted(rows, key=lambda r: str(r["side"])):
        kept.setdefault(tuple(row[c] for c in (*SET, "phi", "n_folds")), row)
    return [row for row in rows if any(row is one for one in kept.values())]


def lead(facts: Facts) -> Lead:
    """What FairPair says, for the opening; without sentences where nothing was measured."""
    rows = main_rows([r for r in facts.ask("fairpair_set") if r["subset"] == "all"])
    prompts = facts.ask("fairpair_prompt") if rows else []
    sentences = []
    for key in sorted({(r["probe_set"], r["phi"], r["n_folds"]) for r in rows}):
        of = [r for r in rows if (r["probe_set"], r["phi"], r["n_folds"]) == key]
        if len(of) > _ONE_BY_ONE:
            sentences.append(_summed_up(of))
            continue
        for row in of:
            here = [p for p in prompts if same(p, row, MEASURE)]
            said = f"{row['probe_set']}: {verdict(row)} {which(here)}"
            sentences.append(said.strip())
    return Lead("Is one name written of differently than the other?", sentences)


def _summed_up(rows: Sequence[Row]) -> str:
    furthest = max(rows, key=lambda r: r["fairpair_f"] or 0)
    return (
        f"{rows[0]['probe_set']} ({measure(rows[0])}): continuations about {whom(rows[0])} differ "
        f"more than two of the same prompt in {sum(map(differs, rows))} of {len(rows)} samplings; "
        f"furthest in {furthest['model']}'s (F = {with_interval(furthest)})."
    )
