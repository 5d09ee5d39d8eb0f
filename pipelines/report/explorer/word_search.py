"""The search of words: lean and sentences in each text, and what models prefer."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence

from plumbline.pipelines.report.explorer.search import Block, Search, Thing, link
from plumbline.pipelines.report.facts import Facts
from plumbline.pipelines.report.model import counted, estimate
from plumbline.pipelines.report.rows import Row, corpus_name, set_name, sides
from plumbline.pipelines.report.sentences import word_leans

#: The 20,000 most frequent words of each text, words of sentence pairs, words that lean most, and
#: words that `plumbline why` was asked about.
_WORDS = r"""
SELECT
    l.* EXCLUDE (p, q), 1e6 * l.n_word / c.n_kept_tokens AS per_million, e.clusters, e.n_clusters
FROM word_lean AS l
SEMI JOIN shown_contrast USING (corpus, contrast)
LEFT JOIN word_evidence AS e USING (corpus, contrast, word)
LEFT JOIN corpus AS c USING (corpus)
QUALIFY e.word IS NOT NULL
    OR l.word IN (SELECT lower(word) FROM benchmark_pair)
    OR l.word IN (SELECT max_pmi_word FROM pair_association)
    OR (corpus, contrast, l.word) IN (SELECT (corpus, contrast, word) FROM lean_candidate)
    OR row_number() OVER (
        PARTITION BY corpus, contrast ORDER BY l.n_word DESC NULLS LAST, l.word
    ) <= 20000
ORDER BY
    NOT regexp_matches(l.word, '\pL'), max(l.n_word) OVER (PARTITION BY l.word) DESC NULLS LAST,
    l.word, corpus, contrast
"""
_SNIPPETS = """
SELECT *, coalesce(file, source, '–') AS "where" FROM word_snippet
WHERE place <= 3 ORDER BY side, place
"""
#: Mean log ratio of each model over the pairs made for a word, with Student's interval.
_PREFERENCES = """
SELECT
    model_key, model, benchmark, groups, lower(word) AS word,
    avg(log_ratio_nats ORDER BY pair_id) AS mean_nats,
    mean_nats - student_half(log_ratio_nats) AS mean_nats_low,
    mean_nats + student_half(log_ratio_nats) AS mean_nats_high
FROM scored_pair
WHERE word IS NOT NULL
GROUP BY ALL
ORDER BY benchmark, groups, model, model_key, word
"""


def words(facts: Facts, n_pairs: Mapping[str, int]) -> Search | None:
    """Return the words of a warehouse, the most frequent ones first; ``None`` without any.

    ``n_pairs`` is the number of sentence pairs with each word.
    """
    leans = facts.query(_WORDS)
    found, snippets = Search("words", "Words", "Search a word"), defaultdict(list)
    for row in facts.query(_SNIPPETS):
        snippets[_key(row)].append(row)
    texts = {(row["corpus"], row["contrast"]): str(corpus_name(row)) for row in leans}
    names = {text: facts.contrast_sides(*text) for text in texts}
    for row in leans:
        word = found.things.setdefault(row["word"], Thing(row["word"]))
        word.note += f"{' · ' * bool(word.note)}{estimate(row, 'delta_nats').text}"
        word.note += f" in {corpus_name(row)}" * (len(texts) > 1)
        word.blocks += _in_text(found, row, names[_key(row)[:2]], snippets[_key(row)])
    preferences = defaultdict[str, list[Row]](list)
    for row in facts.query(_PREFERENCES):
        if math.isfinite(row["mean_nats"]):
            preferences[row["word"]].append(row)
    for name, rows in preferences.items():
        word = found.things.setdefault(name, Thing(name))
        word.blocks.append(_preferences(found, rows))
    for name, word in found.things.items():
        if n := n_pairs.get(name):
            text = f"{counted(n, 'sentence pair')} with this word"
            word.blocks.append(link(text, "pairs", name))
    found.lede = (
        f"How {len(found.things):,} words lean in {', '.join(texts.values()) or 'no text'}, the "
        "most frequent first, and what models prefer in sentence pairs about them. A lean above 0 "
        "is towards the first side of a contrast, such as she in she/he; at 0.69 nats a word is "
        "twice as often near that side. `plumbline why WORD` adds sentences from the text."
    )
    return found if found.things else None


def _key(row: Row) -> tuple[str, str, str]:
    return row["corpus"], row["contrast"], row["word"]


def _in_text(
    found: Search, row: Row, names: tuple[str, str], snippets: Sequence[Row]
) -> list[Block]:
    """Return what is known about a word in one text: its lean, its counts, and sentences."""
    first, second = names
    where = f" in {corpus_name(row)}"
    counts = [] if row["n_word"] is None else [counted(row["n_word"], "time")]
    if row["per_million"] is not None:
        counts.append(f"{row['per_million']:,.2f} per million kept tokens")
    if row["n_pair_f"] is not None:
        counts += [f"{row['n_pair_f']:,} near {first}", f"{row['n_pair_m']:,} near {second}"]
    blocks: list[Block] = [f"{row['word']} {word_leans(row, first, second, where)}."]
    if counts:
        blocks.append(f"Counted: {', '.join(counts)}.")
    if snippets:
        near = {"a": first, "b": second}
        lines = [
            [near[r["side"]], [r["text_before"], [r["keyword"]], r["text_after"]], r["where"]]
            for r in snippets
        ]
        caption = f"Sentences drawn at random{where}"
        blocks.append(found.table(caption, ["Near", "Sentence", "Source"], lines))
    return blocks


def _preferences(found: Search, rows: Sequence[Row]) -> Block:
    """Return a table of each model's preference in the pairs of each benchmark made for a word."""
    cells = defaultdict[str, dict[str, str]](dict)
    for row in rows:
        heading = f"{set_name(row)}: {sides(row)[0]} above 0"
        cells[row["model"]][heading] = estimate(row, "mean_nats", 2, signed=True).text
    headings = dict.fromkeys(heading for of in cells.values() for heading in of)
    lines = [[model, *(of.get(h, "–") for h in headings)] for model, of in sorted(cells.items())]
    caption = "Mean log ratio in the pairs made for this word, in nats (95% interval over pairs)"
    return found.table(caption, ["Model", *headings], lines)
