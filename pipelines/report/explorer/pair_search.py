"""The search of sentence pairs: which sentence each model prefers."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Sequence
from difflib import SequenceMatcher

from plumbline.pipelines.report.explorer.search import Search, Thing, link
from plumbline.pipelines.report.facts import Facts
from plumbline.pipelines.report.model import counted, shown
from plumbline.pipelines.report.rows import Row, corpus_name, filled, set_name, sides

#: Most pairs and log ratios on the page.
_PAIRS, _RATIOS = 50_000, 3_000_000
#: Split a sentence into words as the search does.
_searched = re.compile(r"[^\W_]+").findall

_MODELS = """
SELECT DISTINCT benchmark, model_key, label FROM pair_score JOIN model_label USING (model_key)
ORDER BY benchmark, label, model_key
"""
#: Pairs, with a text for each model: its log ratio and the group whose sentence it prefers. If
#: there are too many pairs, each benchmark gets the same number.
_SCORED = """
WITH chosen AS (
    SELECT *, count(*) OVER () AS n_pairs
    FROM benchmark_pair WHERE list_contains($benchmarks, benchmark)
    ORDER BY row_number() OVER (PARTITION BY benchmark ORDER BY pair_id), benchmark
    LIMIT $most
),
scored AS (
    SELECT DISTINCT benchmark, model_key, label FROM pair_score JOIN model_label USING (model_key)
    WHERE list_contains($keys, model_key)
),
ratio AS (
    SELECT
        benchmark, pair_id, model_key, finite(logprob_a_nats) - finite(logprob_b_nats) AS nats,
        replace(format('{:+.3f} ', nats), '-', '−') AS shown, lean(nats, $epsilon) AS side
    FROM pair_score
)
SELECT
    benchmark, group_a || '/' || group_b AS groups, pair_id, sentence_a, sentence_b, word,
    is_natural IS FALSE AS is_unnatural, n_pairs,
    list(CASE side
        WHEN 1 THEN shown || group_a WHEN -1 THEN shown || group_b WHEN 0 THEN shown || 'neither'
        ELSE 'no score'
    END ORDER BY label, model_key) AS preferences,
    count(*) FILTER (side = 1) AS n_first,
    count(*) FILTER (side = -1) AS n_second,
    abs(avg(nats ORDER BY model_key)) AS size
FROM chosen JOIN scored USING (benchmark)
LEFT JOIN ratio USING (benchmark, pair_id, model_key)
GROUP BY ALL
ORDER BY is_unnatural, size DESC NULLS LAST, benchmark, pair_id
"""
_MAX_PMI = """
SELECT benchmark, pair_id, corpus, contrast, max_pmi_nats, max_pmi_word FROM pair_association
WHERE max_pmi_nats IS NOT NULL ORDER BY corpus, contrast
"""


def pairs(facts: Facts) -> Search | None:
    """Return the pairs that were scored, strongest preferences first; ``None`` without any.

    A pair's key is its benchmark and identifier, such as ``use-5/00012``.
    """
    models = facts.query(_MODELS)
    keys = sorted({row["model_key"] for row in models})
    benchmarks = sorted({row["benchmark"] for row in models})
    epsilon = next((r["epsilon_nats"] for r in facts.metrics("us")), None) or math.log(1.65)
    most = min(_PAIRS, _RATIOS // max(1, len(keys)))
    limits = {"keys": keys, "benchmarks": benchmarks, "epsilon": epsilon, "most": most}
    rows = facts.query(filled(_SCORED, limits)) if models else []
    if not rows:
        return None
    n_left_out = rows[0]["n_pairs"] - len(rows)
    more = f" {n_left_out:,} more pairs are in view `audited_pair`." if n_left_out else ""
    found = Search(
        "pairs",
        "Sentence pairs",
        "Search words of a sentence, or a benchmark",
        f"Which sentence of {len(rows):,} pairs {counted(len(keys), 'model')} prefer, by the log "
        "ratio: log p(first sentence) − log p(second sentence), in nats. Within "
        f"±{shown(epsilon, 3)} a model prefers neither. Pairs with the largest mean log ratio come "
        f"first. The benchmarks are {', '.join(benchmarks)}.{more}",
    )
    labels = {name: [r["label"] for r in models.where(benchmark=name)] for name in benchmarks}
    for row in rows:
        found.things[_key(row)] = _pair(found, row, labels[row["benchmark"]])
    for row in facts.query(_MAX_PMI):
        if pair := found.things.get(_key(row)):
            word, nats = row["max_pmi_word"], shown(row["max_pmi_nats"], signed=True)
            text = f"MaxPMI in {corpus_name(row)}: {nats} nats"
            pair.blocks.append(
                link(f"{text}, from the word {word}", "words", word) if word else text
            )
    return found


def n_pairs_by_word(found: Search) -> Counter[str]:
    """Return the number of pairs with each word, in lower case."""
    counts = Counter[str]()
    for pair in found.things.values():
        texts = (part if isinstance(part, str) else " ".join(part) for part in pair.text)
        counts.update(set(_searched(" ".join(texts).lower())))
    return counts


def _key(row: Row) -> str:
    return f"{row['benchmark']}/{row['pair_id']}"


def _pair(found: Search, row: Row, models: Sequence[str]) -> Thing:
    """Return the page of a pair from its row of ``_SCORED``."""
    differing, names = parts(row["sentence_a"].split(), row["sentence_b"].split()), sides(row)
    sentences = [
        [name, [part if isinstance(part, str) else [part[side]] for part in differing]]
        for side, name in enumerate(names)
    ]
    blocks = [found.table("The two sentences", ["Group", "Sentence"], sentences)]
    if row["is_unnatural"]:
        blocks.append("It isn't natural, so metrics leave it out.")
    if row["word"]:
        blocks.append(link(f"Made for the word {row['word']}", "words", row["word"].lower()))
    headings = ["Model", "Log ratio, nats, and the sentence preferred"]
    blocks.append(found.table("What each model prefers", headings, row["preferences"], models))
    note = f"{row['n_first']} {names[0]} · {row['n_second']} {names[1]} of {len(models)}"
    return Thing(differing, f"{set_name(row)} · {note}", blocks)


def parts(a: Sequence[str], b: Sequence[str]) -> list[str | list[str]]:
    """Return the words that two sentences share, and lists [words of a, words of b] elsewhere.

    >>> parts("She lost her own key".split(), "He lost his key".split())
    [['She', 'He'], 'lost', ['her own', 'his'], 'key']
    """
    found = list[str | list[str]]()
    for kind, i, j, k, m in SequenceMatcher(None, a, b, autojunk=False).get_opcodes():
        text = " ".join(a[i:j])
        found.append(text if kind == "equal" else [text, " ".join(b[k:m])])
    return found
