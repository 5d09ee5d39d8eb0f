"""Pairs of a benchmark's source, and rejects for the rows that can't be used."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from plumbline.eval_workers.pairs.benchmarks.own.shared_text import DIFFERS
from plumbline.eval_workers.pairs.pronouns.pronoun_templates import (
    fill,
    pronoun_first,
    template_problem,
)
from plumbline.eval_workers.work.rejects import rejected
from plumbline.warehouse.errors import BadInput
from plumbline.warehouse.text.csv_rows import Record, records

Row = dict[str, object]

#: The groups of pairs whose source names no groups.
USUAL = ("female", "male")


def pair_row(
    pair_id: str,
    template: str,
    sentences: tuple[str, str],
    groups: tuple[str, str],
    **columns: object,
) -> Row:
    """A row of ``benchmark_pair`` without ``benchmark``; ``columns`` add or replace columns."""
    return {
        "pair_id": pair_id,
        "item_id": pair_id,
        "template": template,
        "sentence_a": sentences[0],
        "sentence_b": sentences[1],
        "group_a": groups[0],
        "group_b": groups[1],
        "pronoun_first": template.lstrip("\"'“‘«([ ").startswith("{"),
        **columns,
    }


@dataclass
class Parsed:
    """Pairs of a source, and a reject for each row of the source that makes none.

    ``pairs`` are rows of ``benchmark_pair`` without the column ``benchmark``; ``rejects`` are rows
    of ``reject`` without ``run_id``; ``facts`` maps a fact's name to its text (``Recipe.facts``).
    """

    name: str
    pairs: list[Row] = field(default_factory=list)
    rejects: list[Row] = field(default_factory=list)
    facts: Mapping[str, str] = field(default_factory=dict)
    _seen: set[str] = field(default_factory=set)

    def add(
        self, *, pair_id: str, template: str, source_file: str, source_row: int, **columns: object
    ) -> None:
        """Add the pair of one source row, or a reject when the template or the id is unusable.

        ``columns`` are the optional columns of ``benchmark_pair``.

        >>> parsed = Parsed("demo")
        >>> parsed.add(pair_id="1", template="{pronoun} ran.", source_file="f", source_row=1)
        >>> parsed.add(pair_id="2", template="They ran.", source_file="f", source_row=2)
        >>> [p["sentence_a"] for p in parsed.pairs], len(parsed.rejects)
        (['She ran.'], 1)
        """
        if problem := template_problem(template):
            reason = self._identifier_problem(pair_id) or problem
            self.reject(source_file, source_row, reason, template)
            return
        sentences = fill(template, "f"), fill(template, "m")
        columns |= {"source_file": source_file, "source_row": source_row}
        columns["pronoun_first"] = pronoun_first(template)
        self.take([pair_row(pair_id, template, sentences, USUAL, **columns)])

    def take(self, pairs: Sequence[Row]) -> None:
        """Add the pairs of one source row, or one reject if any of them can't be used.

        >>> parsed, row = Parsed("demo"), {"source_file": "f", "source_row": 1, "template": ""}
        >>> sides = {"sentence_a": "Tea.", "sentence_b": "Tea.", "group_a": "x", "group_b": "y"}
        >>> parsed.take([{**row, **sides, "pair_id": "1", "item_id": "1"}])
        >>> parsed.rejects[0]["reason"]
        'both sentences are the same'
        """
        problem = next(filter(None, map(self._problem, pairs)), "")
        identifiers = {str(pair["pair_id"]) for pair in pairs}
        if not problem and len(identifiers) < len(pairs):
            problem = "two pairs of the row have the same identifier"
        if problem:
            file, row = str(pairs[0]["source_file"]), int(str(pairs[0]["source_row"]))
            text = str(pairs[0]["template"])
            if not text or DIFFERS in text:
                text = f"{pairs[0]['sentence_a']} | {pairs[0]['sentence_b']}"
            self.reject(file, row, problem, text)
            return
        self._seen |= identifiers
        self.pairs += pairs

    def _problem(self, pair: Row) -> str | None:
        sentences, groups = (
            [str(pair[f"{what}_{side}"]) for side in "ab"] for what in ("sentence", "group")
        )
        if problem := self._identifier_problem(str(pair["pair_id"])):
            return problem
        if any("\ud800" <= c <= "\udfff" for v in pair.values() for c in str(v)):
            return "the row holds bytes that are not UTF-8, or half a surrogate pair"
        if any(not s.strip() or "\x00" in s for s in sentences):
            return "a sentence is empty or holds a NUL"
        if sentences[0] == sentences[1]:
            return "both sentences are the same"
        if groups[0] == groups[1] or any(not g.strip() or "/" in g for g in groups):
            return f"the groups are {groups[0]!r} and {groups[1]!r}, expected two names without /"
        return None

    def _identifier_problem(self, pair_id: str) -> str | None:
        if not pair_id:
            return "the row has no identifier"
        if pair_id in self._seen:
            return f"the identifier {pair_id} was already used by an earlier row"
        return None

    def reject(self, source_file: str, source_row: int, reason: str, excerpt: str) -> None:
        """Add a reject for a source row that can't be used."""
        row = {"source_file": source_file, "source_row": source_row}
        common = {"stage": "benchmark", "subject": self.name}
        self.rejects.append({**common, **rejected(row, reason, excerpt)})


#: Values of a yes-or-no column in released files.
TRUTH = ("True", "False")


def locate(source: Path, stem: str) -> Path:
    """The table ``<stem>.csv`` or ``<stem>.csv.gz`` in a directory; a file is returned as is."""
    if source.is_file():
        return source
    for name in (f"{stem}.csv", f"{stem}.csv.gz"):
        if (source / name).is_file():
            return source / name
    raise BadInput(f"{source}", f"holds neither {stem}.csv nor {stem}.csv.gz", "give --source PATH")


def usable(
    parsed: Parsed,
    path: Path,
    columns: tuple[str, ...],
    allowed: Mapping[str, Sequence[str]],
    *,
    excerpt: str = "template",
    delimiter: str = ",",
) -> Iterator[Record]:
    """Rows of a table whose columns have ``allowed`` values; other rows become rejects.

    ``excerpt`` is the column that a reject shows. Raises as ``records``.
    """
    for record in records(path, columns, delimiter):
        problem = record.problem
        for column, values in allowed.items():
            if problem is None and (value := record.fields[column]) not in values:
                problem = f"{column} is {value!r}, expected {' or '.join(values)}"
        if problem:
            parsed.reject(path.name, record.number, problem, record.fields.get(excerpt, ""))
        else:
            yield record


def index_id(prefix: str, value: str) -> str:
    """A pair's identifier from its number in a table; empty if ``value`` is not a number.

    Five digits let identifiers sort as text.

    >>> index_id("dev-", "7"), index_id("", "x")
    ('dev-00007', '')
    """
    return f"{prefix}{int(value):05d}" if value.isascii() and value.isdigit() else ""
