"""The sections about text: ledgers, the lean of words, planted against measured."""

from __future__ import annotations

import re

from plumbline.pipelines.report import draw
from plumbline.pipelines.report.facts import MIN_PAIRS, TOP_WORDS, Facts
from plumbline.pipelines.report.model import (
    Cell,
    Figure,
    Missing,
    Row,
    Section,
    Table,
    count,
    estimate,
    text,
)


def stem(*parts: str) -> str:
    """A file name stem of plain characters from names that may hold any.

    >>> stem("us", "USE-5", "<b>/../x")
    'us-use-5-b-x'
    """
    return re.sub(r"[^a-z0-9.]+", "-", " ".join(parts).lower().replace("..", "")).strip("-.")[:80]


def ledger(facts: Facts) -> Section | Missing:
    """What was counted, what was not, and why."""
    if not (facts.ledger or facts.reject or facts.failed_shard):
        command = "plumbline corpus count SHARDS... --corpus NAME"
        return Missing("The text that was counted", command)
    rows = [
        [
            text(r["corpus"]),
            text(_how(r)),
            Cell(f"{r['n_shards']:,}", r["n_shards"], True),
            count(r["n_shards_failed"]),
            count(r["n_in"]),
            count(r["n_counted"]),
            count(r["n_rejected"]),
            *(count(r[c]) for c in ("n_tokens", "n_kept_tokens", "n_words", "n_pairs")),
        ]
        for r in facts.ledger
    ]
    headings = ["corpus", "how", "shards counted", "shards failed", "documents in", "counted"]
    headings += ["rejected", "tokens", "kept tokens", "distinct words", "co-occurrences"]
    query = facts.sql("ledger")
    tables = [Table("Ledger of each corpus", headings, rows, sql=query)] if rows else []
    if facts.reject:
        rejects = [
            [
                *(text(r[column]) for column in ("stage", "subject", "reason")),
                *(count(r["n"]), text(r["example"])),
            ]
            for r in facts.reject
        ]
        headings = ["stage", "of", "reason", "rows", "first one"]
        query, is_long = facts.sql("reject"), len(rejects) > 12
        tables.append(Table("Input that was not used", headings, rejects, is_long, query))
    alerts = [
        f"A shard of {r['corpus']} failed and is not in its counts: {r['shard']} ({r['error']})"
        for r in facts.failed_shard
    ]
    for r in facts.ledger:
        if r["n_in"] is not None and r["n_in"] != r["n_counted"] + r["n_rejected"]:
            alerts.append(f"The ledger of {r['corpus']} does not add up: count it again.")
    intro = [
        "Documents in = counted + rejected, for every shard. A shard that cannot be read to "
        "its end is failed as a whole, never counted in part."
    ]
    return Section("text", "The text that was counted", intro, alerts, (), tables)


def _how(row: Row) -> str:
    if row["source"] != "counted":
        return str(row["source"])
    rare = f", words counted fewer than {row['min_count']:,} times pruned"
    how = f"rule {row['rule']}, window of {row['window']}, targets {row['targets']}"
    return how + (rare if row["min_count"] > 1 else "")


def lean(facts: Facts) -> Section | Missing:
    """How the words of each corpus lean."""
    if not facts.word and not facts.delta:
        return Missing("How words lean", "plumbline corpus associate --corpus NAME")
    figures = []
    for contrast in sorted({r["contrast"] for r in facts.delta}):
        rows = [r for r in facts.delta if r["contrast"] == contrast]
        n = sum(r["n_words"] for r in rows)
        plot = draw.delta_distribution(rows, contrast)
        figures.append(
            Figure(
                stem("delta", contrast),
                f"Distribution of delta for the contrast {contrast}, a line for each corpus.",
                f"Share of words in each tenth of a nat of delta ({contrast}); {n:,} words seen at "
                f"least {MIN_PAIRS} times with each side. At +0.69 a word keeps company with the "
                "female words twice as strongly as with the male ones.",
                plot,
                rows,
                facts.sql("delta", {"contrast": contrast}),
            )
        )
    intro = [
        "delta is the PMI of a word with the female minus that with the male words of a contrast, "
        f"in nats: above 0 leans female. The plots leave out words seen fewer than {MIN_PAIRS} "
        "times with either side; no metric leaves them out. The tables rank words by the bound of "
        "the 95% interval of delta nearer 0, and list none whose interval holds 0."
    ]
    return Section("words", "How words lean", intro, (), figures, _word_tables(facts))


def _word_tables(facts: Facts) -> list[Table]:
    tables: list[Table] = []
    headings = ["place", "female", "delta", "counts f / m", "male", "delta", "counts f / m"]
    for corpus, contrast in sorted({(r["corpus"], r["contrast"]) for r in facts.word}):
        of = [r for r in facts.word if (r["corpus"], r["contrast"]) == (corpus, contrast)]
        rows = []
        for place in range(1, TOP_WORDS + 1):
            female = [r for r in of if r["place"] == place and r["delta_nats"] > 0]
            male = [r for r in of if r["place"] == place and r["delta_nats"] < 0]
            if female or male:
                rows.append([count(place), *_word_cells(female), *_word_cells(male)])
        caption = f"Words of {corpus} that lean most ({contrast}), 95% intervals in brackets"
        query = facts.sql("word", {"corpus": corpus, "contrast": contrast})
        tables.append(Table(caption, headings, rows, bool(tables), query, searchable=True))
    return tables


def _word_cells(found: list[Row]) -> list[Cell]:
    if not found:
        return [text(""), text(""), text("")]
    row = found[0]
    pairs = "–" if row["n_pair_f"] is None else f"{row['n_pair_f']:,} / {row['n_pair_m']:,}"
    names = {"value": "delta_nats", "ci_low": "delta_low_nats", "ci_high": "delta_high_nats"}
    delta = estimate({name: row[column] for name, column in names.items()}, 2, signed=True)
    return [text(row["word"]), delta, Cell(pairs, None, True)]


def planted(facts: Facts) -> Section | Missing:
    """Planted against measured delta in the closed world."""
    subset = "words, measured on planted"
    fits = [r for r in facts.fit if r["subset"] == subset]
    if not fits:
        return Missing("Planted against measured lean", "plumbline pipeline")
    figures = []
    for fit in fits:
        points = facts.points(fit)
        if not draw.is_drawable(points):
            continue
        *_, rank = fit_cells(facts, fit)
        note = f"rank correlation {rank.text}, n = {fit['n']:,} words"
        labels = {
            "title": f"{fit['corpus']} ({fit['contrast']})",
            "x": "planted delta in nats",
            "y": "measured delta in nats",
            "note": note.replace("), ", ")\n"),
            "identity": "measured = planted",
        }
        alt = f"Measured against planted delta of the words of {fit['corpus']}: {note}."
        caption = f"{fit['corpus']}, {fit['contrast']}: each point is a word; {note}."
        name = stem("planted", fit["corpus"], fit["contrast"])
        plot, query = draw.fitted(points, fit, labels), facts.sql("point", fit)
        figures.append(Figure(name, alt, caption, plot, points, query))
    rows = [
        [text(r["corpus"]), text(r["contrast"]), *fit_cells(facts, r), count(r["n"])]
        for r in facts.metrics("slope", subset=subset)
    ]
    headings = ["corpus", "contrast", "slope", "correlation", "rank correlation", "words"]
    intro = [
        "The corpus writer chose each word's lean; counting knows nothing of that choice. If "
        "counting works, the points lie on the dotted line, but for the noise of finite counts."
    ]
    metrics = ("slope", "correlation", "rank correlation")
    query = facts.sql("metric", {"metric": metrics, "subset": subset})
    caption = "Measured on planted delta, 95% intervals in brackets"
    table = Table(caption, headings, rows, sql=query)
    return Section("planted", "Planted against measured lean", intro, (), figures, [table])


def fit_cells(facts: Facts, row: Row) -> list[Cell]:
    """Slope, correlation and rank correlation of a fit, as `metric_value` has them."""
    keys = ("subset", "model_key", "benchmark", "corpus", "contrast", "options")
    same = {k: row[k] for k in keys}
    found = [facts.metrics(name, **same) for name in ("slope", "correlation", "rank correlation")]
    digits = (2, 3, 3)
    return [estimate(f[0] if f else None, d) for f, d in zip(found, digits, strict=True)]
