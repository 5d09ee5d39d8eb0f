"""Write the report's pages words.html and pairs.html, which let the reader search a list.

A "thing" is an entry of the list: a word or a sentence pair. The details of things are in other
files, which the page loads when needed.
"""

from __future__ import annotations

import math
import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias
from urllib.parse import quote

from plumbline.pipelines.report.facts import Facts
from plumbline.pipelines.report.model import counted, estimate, shown
from plumbline.pipelines.report.rows import Row, corpus_name, filled, parts, set_name, sides
from plumbline.pipelines.report.sentences import word_leans
from plumbline.pipelines.report.templates import as_script, rendered
from plumbline.warehouse.text.escape import terminal

#: Number of things in each file of ``block_files``.
_PER_FILE = 100

#: A text, or its parts: plain texts, and lists of alternatives, which are shown as "a / b".
Parts: TypeAlias = str | Sequence[str | Sequence[str]]
#: A row of a table: its cells, or only the second cell if the table stores row names.
Line: TypeAlias = Sequence[Parts] | str
#: A paragraph, a link (its text and address), or a table (its number in ``Search.tables``, rows).
Block: TypeAlias = str | tuple[str, str] | tuple[int, Sequence[Line]]


@dataclass
class Thing:
    """A word or a sentence pair. The list shows ``text`` and ``note``; ``blocks`` has details."""

    text: Parts
    note: str = ""
    blocks: list[Block] = field(default_factory=list)


@dataclass
class Search:
    """The content of a search page.

    Attributes:
        kind: ``words`` or ``pairs``: the name of the page and of the directory of its files.
        title, label: the page's heading, and the label of its search field.
        lede: sentences that say what the page shows.
        things: maps keys to things, in the order of the list. ``KIND.html#KEY`` opens a thing.
        tables: maps the layout of a table (caption, headings and row names) to its number.
    """

    kind: str
    title: str
    label: str
    lede: str = ""
    things: dict[str, Thing] = field(default_factory=dict)
    tables: dict[tuple[str, tuple[str, ...], tuple[str, ...]], int] = field(default_factory=dict)

    def table(
        self, caption: str, headings: Sequence[str], rows: Sequence[Line], names: Sequence[str] = ()
    ) -> Block:
        """Return a table of details. Equal captions, headings and row ``names`` are stored once."""
        shape = (caption, tuple(headings), tuple(names))
        return self.tables.setdefault(shape, len(self.tables)), rows


def link(text: str, kind: str, key: str) -> Block:
    """Link to a thing on the page ``kind``.html. If the key is missing, the page searches for it.

    >>> link("either", "words", "and/or")
    ('either', 'words.html#and%2For')
    """
    return text, f"{kind}.html#{quote(terminal(key), safe='')}"


def search_page(search: Search) -> str:
    """Return the page as HTML. It loads the ``block_files`` from the directory ``search.kind``."""
    index = {
        "kind": search.kind,
        "size": _PER_FILE,
        "tables": _visible([*search.tables]),
        "things": _visible([(key, thing.text, thing.note) for key, thing in search.things.items()]),
    }
    return rendered("search.html", "search.js", search=search, index=index)


def block_files(search: Search) -> Iterator[tuple[str, str]]:
    """Yield the name and content of each file that holds details of words or pairs.

    The files are scripts, since a page that was opened from disk can load only scripts.
    """
    blocks = [thing.blocks for thing in search.things.values()]
    for k, start in enumerate(range(0, len(blocks), _PER_FILE)):
        text = as_script(_visible(blocks[start : start + _PER_FILE]))
        yield f"{k}.js", f"plumblineBlocks({k}, {text});\n"


def _visible(value: object) -> object:
    if isinstance(value, str):
        return terminal(value)
    return [*map(_visible, value)] if isinstance(value, list | tuple) else value


#: Maximum numbers of pairs and of log ratios on the page.
_PAIRS, _RATIOS = 50_000, 3_000_000
#: Split a sentence into words as the search does.
_searched = re.compile(r"[^\W_]+").findall

_SCORED_BY = """
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
    """Return the page of scored pairs. The strongest preference comes first.

    A pair's key is its benchmark and identifier, such as ``use-5/00012``. Returns ``None`` if there
    are no pairs.
    """
    models = facts.query(_SCORED_BY)
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
        f"{counted(len(rows), 'pair')}, scored by {counted(len(keys), 'model')}. The log ratio is "
        "log p(first sentence) − log p(second sentence), in nats. Within "
        f"±{shown(epsilon, 3)} a model prefers neither. Pairs whose mean log ratio is furthest "
        f"from 0 come first. The benchmarks are {', '.join(benchmarks)}.{more}",
    )
    labels = {name: [r["label"] for r in models.where(benchmark=name)] for name in benchmarks}
    for row in rows:
        found.things[_pair_key(row)] = _pair(found, row, labels[row["benchmark"]])
    for row in facts.query(_MAX_PMI):
        if pair := found.things.get(_pair_key(row)):
            word, nats = row["max_pmi_word"], shown(row["max_pmi_nats"], signed=True)
            text = f"MaxPMI in {corpus_name(row)}: {nats} nats"
            pair.blocks.append(
                link(f"{text}, from the word {word}", "words", word) if word else text
            )
    return found


def n_pairs_by_word(found: Search) -> Counter[str]:
    """Return how many pairs contain each word. Words are in lower case."""
    counts = Counter[str]()
    for pair in found.things.values():
        texts = (part if isinstance(part, str) else " ".join(part) for part in pair.text)
        counts.update(set(_searched(" ".join(texts).lower())))
    return counts


def _pair_key(row: Row) -> str:
    return f"{row['benchmark']}/{row['pair_id']}"


def _pair(found: Search, row: Row, models: Sequence[str]) -> Thing:
    differing, names = parts(row["sentence_a"].split(), row["sentence_b"].split()), sides(row)
    sentences = [
        [name, [part if isinstance(part, str) else [part[side]] for part in differing]]
        for side, name in enumerate(names)
    ]
    blocks = [found.table("The two sentences", ["Group", "Sentence"], sentences)]
    if row["is_unnatural"]:
        blocks.append("This pair was judged unnatural, so metrics leave it out.")
    if row["word"]:
        blocks.append(link(f"Made for the word {row['word']}", "words", row["word"].lower()))
    headings = ["Model", "Log ratio in nats, and the preferred sentence"]
    blocks.append(found.table("What each model prefers", headings, row["preferences"], models))
    note = f"{row['n_first']} {names[0]} · {row['n_second']} {names[1]} of {len(models)}"
    return Thing(differing, f"{set_name(row)} · {note}", blocks)


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
    """Return the page of words. The most frequent word comes first.

    ``n_pairs`` says how many pairs contain each word. Returns ``None`` if there are no words.
    """
    leans = facts.query(_WORDS)
    found, snippets = Search("words", "Words", "Search a word"), defaultdict(list)
    for row in facts.query(_SNIPPETS):
        snippets[_lean_key(row)].append(row)
    texts = {(row["corpus"], row["contrast"]): str(corpus_name(row)) for row in leans}
    names = {text: facts.contrast_sides(*text) for text in texts}
    for row in leans:
        word = found.things.setdefault(row["word"], Thing(row["word"]))
        word.note += f"{' · ' * bool(word.note)}{estimate(row, 'delta_nats').text}"
        word.note += f" in {corpus_name(row)}" * (len(texts) > 1)
        word.blocks += _in_text(found, row, names[_lean_key(row)[:2]], snippets[_lean_key(row)])
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


def _lean_key(row: Row) -> tuple[str, str, str]:
    return row["corpus"], row["contrast"], row["word"]


def _in_text(
    found: Search, row: Row, names: tuple[str, str], snippets: Sequence[Row]
) -> list[Block]:
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
    cells = defaultdict[str, dict[str, str]](dict)
    for row in rows:
        heading = f"{set_name(row)}: {sides(row)[0]} above 0"
        cells[row["model"]][heading] = estimate(row, "mean_nats", 2, signed=True).text
    headings = dict.fromkeys(heading for of in cells.values() for heading in of)
    lines = [[model, *(of.get(h, "–") for h in headings)] for model, of in sorted(cells.items())]
    caption = "Mean log ratio in the pairs made for this word, in nats (95% interval over pairs)"
    return found.table(caption, ["Model", *headings], lines)
