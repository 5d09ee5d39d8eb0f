"""Collects the pairs from a benchmark's rows, and a reject for each row that gives no pair."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from difflib import SequenceMatcher
from itertools import combinations

from plumbline.eval_workers.pairs.pronouns.pronoun_templates import (
    fill,
    fill_for,
    forms,
    template_problem,
)
from plumbline.warehouse.errors import UsageProblem
from plumbline.warehouse.input.input_rows import rejected

Row = dict[str, object]

#: The placeholder that marks where the sentences differ; it isn't counted as a word.
DIFFERS = "{differs}"
_NO_BRACES = str.maketrans("{}", "  ")
_PARTS = re.compile(r"\w+(?:['’]\w+)*|[^\w\s]")
#: The default groups, for a source that names no groups.
USUAL = ("female", "male")
_PRONOUN_OF = {"female": "she", "male": "he"}


def pair_row(
    pair_id: str,
    template: str,
    sentences: tuple[str, str],
    groups: tuple[str, str],
    **columns: object,
) -> Row:
    """Return a ``benchmark_pair`` row without ``benchmark``; ``columns`` add or override values."""
    row: Row = {"pair_id": pair_id, "item_id": pair_id, "template": template}
    row |= {"sentence_a": sentences[0], "sentence_b": sentences[1]}
    row |= {"group_a": groups[0], "group_b": groups[1]}
    row["pronoun_first"] = template.lstrip("\"'“‘«([ ").startswith("{")
    return row | columns


def checked_groups(groups: Sequence[str]) -> tuple[str, ...]:
    """Return the groups to fill templates for, by default female and male.

    Raises ``UsageProblem`` if there are fewer than two groups, if a group is repeated, or if a
    group has no pronouns.
    """
    chosen = tuple(groups) or USUAL
    if len(chosen) < 2 or len(set(chosen)) < len(chosen):
        option = f"--groups {','.join(chosen)}"
        raise UsageProblem(option, "is not two or more different groups", "such as she,he,they")
    for group in chosen:
        forms(_PRONOUN_OF.get(group, group))
    return chosen


def filled(
    template: str, identifier: str, groups: Sequence[str] = USUAL, **columns: object
) -> list[Row]:
    """Fill a template for each group, and return a pair for every two groups.

    The pairs have the same ``item_id``. Raises ``ValueError`` with the reason if the template can't
    be filled for one of the groups.

    >>> pairs = filled("Ann said {pronoun} was late.", "1", ("she", "he", "they"))
    >>> [(pair["pair_id"], pair["sentence_b"]) for pair in pairs[:2]]
    [('1 she/he', 'Ann said he was late.'), ('1 she/they', 'Ann said they were late.')]
    """
    if problem := template_problem(template):
        raise ValueError(problem)
    if tuple(groups) == USUAL:
        sentence_of = {"female": fill(template, "f"), "male": fill(template, "m")}
    else:
        sentence_of = {g: fill_for(template, _PRONOUN_OF.get(g, g)) for g in groups}
    pairs = []
    for a, b in combinations(groups, 2):
        pair_id = identifier if len(groups) == 2 else f"{identifier} {a}/{b}"
        sentences = sentence_of[a], sentence_of[b]
        columns = {"item_id": identifier, **columns}
        pairs.append(pair_row(pair_id, template, sentences, (a, b), **columns))
    return pairs


@dataclass
class Parsed:
    """The pairs from a source, and a reject for each row of the source that gives no pair.

    ``pairs`` are rows of ``benchmark_pair`` without the column ``benchmark``. ``rejects`` are rows
    of ``reject`` without ``stage``, ``subject`` and ``run_id``. ``facts`` maps a fact's name to its
    text (``Recipe.facts``).
    """

    name: str
    pairs: list[Row] = field(default_factory=list)
    rejects: list[Row] = field(default_factory=list)
    facts: Mapping[str, str] = field(default_factory=dict)
    _seen: set[str] = field(default_factory=set)

    def add(
        self, *, pair_id: str, template: str, groups: Sequence[str] = USUAL, **columns: object
    ) -> None:
        """Add the pairs from one template, or a reject if the template or the id can't be used.

        ``columns`` are ``source_file``, ``source_row`` and optional columns of ``benchmark_pair``.

        >>> parsed = Parsed("demo")
        >>> parsed.add(pair_id="1", template="{pronoun} ran.", source_file="f", source_row=1)
        >>> parsed.add(pair_id="2", template="They ran.", source_file="f", source_row=2)
        >>> [p["sentence_a"] for p in parsed.pairs], len(parsed.rejects)
        (['She ran.'], 1)
        """
        try:
            self.take(filled(template, pair_id, groups, **columns))
        except ValueError as e:
            self.reject(columns, str(e), template)

    def take(self, pairs: Sequence[Row]) -> None:
        """Add the pairs from one source row, or one reject if any of these pairs can't be used.

        >>> parsed, row = Parsed("demo"), {"source_file": "f", "source_row": 1, "template": ""}
        >>> sides = {"sentence_a": "Tea.", "sentence_b": "Tea.", "group_a": "x", "group_b": "y"}
        >>> parsed.take([{**row, **sides, "pair_id": "1", "item_id": "1"}])
        >>> parsed.rejects[0]["reason"]
        'both sentences are the same'
        """
        identifiers = {str(pair["pair_id"]) for pair in pairs}
        problem = next(filter(None, map(self._problem, pairs)), "")
        if not problem and len(identifiers) < len(pairs):
            problem = "two pairs of the row have the same identifier"
        if problem:
            text = str(pairs[0]["template"])
            if not text or DIFFERS in text:
                text = f"{pairs[0]['sentence_a']} | {pairs[0]['sentence_b']}"
            self.reject(pairs[0], problem, text)
            return
        self._seen |= identifiers
        self.pairs += pairs

    def _problem(self, pair: Row) -> str | None:
        sentences, groups = (
            [str(pair[f"{what}_{side}"]) for side in "ab"] for what in ("sentence", "group")
        )
        if not (pair_id := str(pair["pair_id"])):
            return "the row has no identifier"
        if pair_id in self._seen:
            return f"the identifier {pair_id} was already used by an earlier row"
        if any("\ud800" <= c <= "\udfff" for v in pair.values() for c in str(v)):
            return "the row holds bytes that are not UTF-8, or half a surrogate pair"
        if any(not s.strip() or "\x00" in s for s in sentences):
            return "a sentence is empty or holds a NUL"
        if sentences[0] == sentences[1]:
            return "both sentences are the same"
        if groups[0] == groups[1] or any(not g.strip() or "/" in g for g in groups):
            return f"the groups are {groups[0]!r} and {groups[1]!r}, expected two names without /"
        return None

    def reject(self, source: Mapping[str, object], reason: str, excerpt: str) -> None:
        """Add a reject for a row that can't be used; ``source`` holds its file and row number."""
        self.rejects.append(rejected(source, reason, excerpt))


def shared_template(a: str, b: str) -> str:
    """Return the words and punctuation that two sentences share, with ``{differs}`` for the rest.

    Shared words must be in the same order in both sentences. The comparison ignores case; the
    result is written as in ``a``. Braces are dropped.

    >>> shared_template("Old men can't code.", "Young women can't code.")
    "{differs} can't code."
    >>> shared_template("We hired Ann, the nurse.", "We hired the nurse.")
    'We hired {differs} the nurse.'
    >>> shared_template("Yes", "no")
    '{differs}'
    """
    a, b = (text.translate(_NO_BRACES) for text in (a, b))
    parts, words_b = list(_PARTS.finditer(a)), [m.group().lower() for m in _PARTS.finditer(b)]
    matcher = SequenceMatcher(None, [m.group().lower() for m in parts], words_b, autojunk=False)
    blocks = matcher.get_matching_blocks()
    matches = [(block.a + k, block.b + k) for block in blocks for k in range(block.size)]
    text, end, i, j = "", 0, 0, 0
    for k, n in [*matches, (len(parts), len(words_b))]:
        if k > i or n > j:
            text += f"{' ' * bool(text and text[-1] != ' ')}{DIFFERS}"
        if k < len(parts):
            token = parts[k].group()
            is_apart = token[0].isalnum() or a[: parts[k].start()].endswith(" ")
            text += a[end : parts[k].end()] if k == i and n == j else f"{' ' * is_apart}{token}"
            end = parts[k].end()
        i, j = k + 1, n + 1
    return re.sub(r"\s+", " ", text).strip()
