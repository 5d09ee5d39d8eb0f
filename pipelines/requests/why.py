"""Ask why words lean, and render the answers."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from plumbline.jobs.association.word_summary import describe_word
from plumbline.jobs.evidence.documents import evidence_of
from plumbline.jobs.evidence.survey import survey
from plumbline.jobs.evidence.why import Sampling, explain
from plumbline.pipelines.report.model import Lead, Page
from plumbline.pipelines.report.plain import markdown, plain
from plumbline.pipelines.report.rows import Rows
from plumbline.pipelines.report.words import QUERIES, answers, headline, word_section
from plumbline.pipelines.report.write import publish
from plumbline.warehouse.errors import (
    BadInput,
    MissingComponent,
    PlumblineError,
    UsageProblem,
)
from plumbline.warehouse.files import opened
from plumbline.warehouse.storage.store import Store
from plumbline.warehouse.text.csv_rows import as_csv
from plumbline.warehouse.text.progress import progress

#: What answers can be rendered as.
FORMATS = ("text", "markdown", "json", "csv")


@dataclass(frozen=True)
class Answers:
    """What was found: the rows of each table, and lines on what has no rows there."""

    lines: tuple[str, ...]
    rows: Mapping[str, Rows]


def ask(
    store: Store,
    corpora: Sequence[str],
    words: Sequence[str],
    contrast: str,
    sampling: Sampling,
    clusters: str | None = None,
) -> Answers:
    """Explain words in corpora; of one whose documents are not there only the counts.

    Raises:
        UsageProblem: no corpus holds any of the words, or what ``explain`` raises.
        BadInput: what was kept of the documents is damaged.
    """
    names = list(corpora) or sorted(store.read("corpus")["corpus"].to_pylist())
    if not names:
        fix = "run `plumbline corpus count`, docs/corpora.md"
        raise UsageProblem("corpora", "there are none yet", fix)
    lines: list[str] = []
    problems: list[PlumblineError] = []
    rows: dict[str, list[dict[str, Any]]] = {name: [] for name in QUERIES}
    for name in names:
        counts: dict[str, list[str]] = {}
        for word in words:
            try:
                counts[word] = describe_word(store, name, word, contrast)
            except UsageProblem as e:
                problems.append(e)
        if not counts:
            continue
        try:
            evidence_of(store, name)
        except (MissingComponent, UsageProblem) as e:
            problems.append(e)
            lines += [line for some in counts.values() for line in some]
            continue
        try:
            with progress(f"look through {name}", "shards") as update:
                found = explain(store, name, list(counts), contrast, sampling, clusters, update)
            for table, some in found.items():
                rows[table] += some
        except UsageProblem as e:  # another corpus may have this contrast
            problems.append(e)
    if not lines and not rows["word_evidence"]:
        raise problems[0]
    shown = {name: Rows(some, QUERIES[name]) for name, some in rows.items()}
    return Answers((*lines, *map(str, problems)), shown)


def ask_top(
    store: Store,
    corpora: Sequence[str],
    top: int,
    contrast: str,
    sampling: Sampling,
    clusters: str | None = None,
    n_with_sentences: int | None = None,
) -> Iterator[str]:
    """Survey the most frequent words of corpora whose documents are there; a line for each corpus.

    Raises:
        UsageProblem: there is no corpus, or none has its documents; or what ``survey`` raises.
    """
    names = list(corpora) or sorted(store.read("corpus")["corpus"].to_pylist())
    problems: list[PlumblineError] = []
    for name in names:
        try:
            evidence_of(store, name)
        except (MissingComponent, UsageProblem) as e:
            problems.append(e)
            continue
        with progress(f"look through {name}", "steps") as update:
            how = contrast, sampling, clusters, n_with_sentences, update
            done = survey(store, name, top, *how)
        yield (
            f"{name}: leans of {done.n_words:,} words and sentences with "
            f"{done.n_with_sentences:,}; those of {done.n_known:,} words were there"
        )
    if len(problems) == len(names):
        raise (
            problems[0]
            if problems
            else UsageProblem("corpora", "there are none yet", "plumbline corpus count ...")
        )
    yield from map(str, problems)


def rendered(found: Answers, form: str) -> Iterator[str]:
    """The answers as lines of one of ``FORMATS``; csv has one row per word, json everything."""
    sections = map(word_section, answers(found.rows))
    if form == "json":
        yield json.dumps(dict(found.rows), indent=1)
    elif form == "csv":
        yield as_csv(found.rows["word_evidence"]).rstrip("\n")
    elif form == "markdown":
        for section in sections:
            yield from markdown(section)
    else:
        for section in sections:
            yield from (*plain(section), "")
        yield from found.lines


def write_page(found: Answers, directory: Path) -> Path:
    """The answers as a page; returns its path. Raises ``BadInput`` when it can't be written."""
    made = [word_section(answer) for answer in answers(found.rows)]
    leads = list(map(headline, found.rows["word_evidence"]))
    names = ", ".join(dict.fromkeys(row["word"] for row in found.rows["word_evidence"]))
    lede = (
        "How far words lean between the two sides of a contrast, over documents; which sources and "
        "copies make the lean; and sentences drawn at random from the text that was counted."
    )
    return publish(
        Page(
            [Lead("Which way does each word lean?", leads)],
            made,
            title=f"Why these words lean: {names}",
            lede=lede,
        ),
        directory,
    )


def words_of(given: Sequence[str], file: Path | None) -> list[str]:
    """The words asked about, lowercase, each once: those given and the lines of a file.

    Raises:
        UsageProblem: there are none.
        BadInput: the file can't be read, or is not UTF-8.
    """
    listed = list(given)
    if file:
        try:
            with opened(file) as raw:
                listed += raw.read().decode().splitlines()
        except (OSError, UnicodeDecodeError) as e:
            raise BadInput(f"words {file}", f"can't be read: {e}", "one word per line") from e
    words = list(dict.fromkeys(word.strip().lower() for word in listed if word.strip()))
    if not words:
        raise UsageProblem("words", "none given", "plumbline why nurse captain")
    return words
