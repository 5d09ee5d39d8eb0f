"""What text was counted, what was not, and why."""

from __future__ import annotations

from collections.abc import Iterator

from plumbline.pipelines.report.facts import Facts
from plumbline.pipelines.report.model import Columns, Missing, Section, table, text
from plumbline.pipelines.report.rows import Row

PLACE = 1100
_TITLE = "The text that was counted"
_MEANING = (
    "Documents in = counted + rejected, for every shard. A shard that cannot be read to "
    "its end is failed as a whole, never counted in part."
)


def sections(facts: Facts) -> Iterator[Section | Missing]:
    """The ledger of each corpus, and rejects; failed shards are alerts."""
    ledger, rejects, failed = map(facts.rows, ("ledger", "reject", "failed_shard"))
    if not (ledger or rejects or failed):
        yield Missing(_TITLE, "plumbline corpus count SHARDS... --corpus NAME")
        return
    alerts = [
        f"A shard of {r['corpus']} failed and is not in its counts: {r['shard']} ({r['error']})"
        for r in failed
    ]
    alerts += [
        f"The ledger of {r['corpus']} does not add up: count it again."
        for r in ledger
        if r["n_in"] is not None and r["n_in"] != r["n_counted"] + r["n_rejected"]
    ]
    columns: Columns = [
        "corpus",
        ("how", lambda r: text(_how(r))),
        ("shards counted", "n_shards"),
        ("shards failed", "n_shards_failed"),
        ("documents in", "n_in"),
        ("counted", "n_counted"),
        ("rejected", "n_rejected"),
        ("tokens", "n_tokens"),
        ("kept tokens", "n_kept_tokens"),
        ("distinct words", "n_words"),
        ("co-occurrences", "n_pairs"),
    ]
    tables = [table("Ledger of each corpus", ledger, columns)]
    columns = ["stage", ("of", "subject"), "reason", ("rows", "n"), ("first one", "example")]
    is_long = len(rejects) > 12
    tables.append(table("Input that was not used", rejects, columns, folded=is_long))
    yield Section("text", _TITLE, [_MEANING], alerts, (), [one for one in tables if one.rows])


def _how(row: Row) -> str:
    if row["source"] != "counted":
        return str(row["source"])
    rare = f", words counted fewer than {row['min_count']:,} times pruned"
    how = f"rule {row['rule']}, window of {row['window']}, targets {row['targets']}"
    return how + (rare if row["min_count"] > 1 else "")
