"""The site of UnStereoEval's release: results computed from its files, and a list of the files."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import starmap
from pathlib import Path

from plumbline.eval_workers.pairs.released.released_files import score_files
from plumbline.pipelines.report.facts import Facts
from plumbline.pipelines.report.model import (
    Cell,
    Link,
    Page,
    PageTable,
    Section,
    count,
    rows_table,
)
from plumbline.pipelines.report.rows import Row
from plumbline.pipelines.report.sections import size
from plumbline.pipelines.report.site import Site, SourceFiles
from plumbline.pipelines.reproduce import run
from plumbline.pipelines.reproduce.anatomy import anatomy_tables, benchmark_anatomy
from plumbline.pipelines.reproduce.anatomy.benchmark_anatomy import BenchmarkAnatomy
from plumbline.pipelines.reproduce.compare import OUTCOMES
from plumbline.pipelines.reproduce.run import Release, ReleaseResult, benchmark_of
from plumbline.pipelines.reproduce.unstereoeval import claims
from plumbline.warehouse.storage.place import sha256_of
from plumbline.warehouse.storage.store import Store

_RELEASE = "https://github.com/ucinlp/unstereo-eval"
_FILES = "files.html"
#: Most files that are listed one by one below a page.
_LISTED = 8
#: The documentation's pages on studies: name, title and subtitle.
STUDIES = {
    "reproduce": ("The published tables", "How the printed figures come about; which are off"),
    "anatomy": ("What the lean goes with", "Parts of the log ratio, and how far to trust them"),
    "cause-study": ("Does the text make the lean?", "Trainings on changed texts, pre-specified"),
    "disclosure-study": ("Does tuning work for unseen words?", "Debias tuning in a closed world"),
    "pythia-power": ("What Pythia's figures could show", "The power of a published intervention"),
}


@dataclass(frozen=True)
class ListedFile:
    """A file of the release; ``path`` is relative to the release's folder.

    ``kind`` is the section that lists it. ``benchmark`` and ``model`` are empty for a file on all.
    """

    path: str
    n_bytes: int
    sha256: str
    kind: str
    benchmark: str = ""
    model: str = ""


#: Kinds of files: the title of their section, and a pattern that finds them in a clone.
KINDS = {
    "statistics": ("Word statistics", "data/pmi_file_w_counts.csv*"),
    "pairs": ("Sentence pairs", "data/datasets/raw/*.csv*"),
    "max-pmi": ("MaxPMI as released", "data/datasets/preprocessed/*.csv*"),
    "scores": ("Scores", "results/*/*.csv*"),
}


def files(data: Path) -> list[ListedFile]:
    """The statistics, pairs, MaxPMI and scores of a release, by kind, then sorted by path."""
    release = Release.at(data)
    scores = {file.path: file for file in score_files(release.results)}
    of_kind = {
        "statistics": [release.statistics] if release.statistics else [],
        "pairs": list(release.raw.glob("*.csv*")),
        "max-pmi": list(release.preprocessed.glob("*.csv*")) if release.preprocessed else [],
        "scores": list(scores),
    }
    listed = []
    for kind, paths in of_kind.items():
        for path in sorted(paths):
            name, scored = path.relative_to(data).as_posix(), scores.get(path)
            about = (scored.benchmark, scored.model) if scored else (benchmark_of(path), "")
            listed.append(ListedFile(name, path.stat().st_size, sha256_of(path), kind, *about))
    return listed


def digest(listed: Sequence[ListedFile]) -> str:
    """The SHA-256 of one file; for several, the SHA-256 of the output of ``sha256sum FILES``.

    >>> one = ListedFile("b", 1, "01", "scores")
    >>> digest([one]), digest([one, replace(one, path="a")])[:8]
    ('01', 'e1c0b860')
    """
    if len(listed) == 1:
        return listed[0].sha256
    lines = "".join(f"{f.sha256}  {f.path}\n" for f in sorted(listed, key=lambda f: f.path))
    return hashlib.sha256(lines.encode()).hexdigest()


def sources(every: Sequence[ListedFile], name: str = "") -> list[SourceFiles]:
    """The files behind a page: of each kind those of ``name``, a model or benchmark, else all."""
    behind, has_statistics = [], any(f.kind == "statistics" for f in every)
    for file_kind, (_, pattern) in KINDS.items():
        if (
            file_kind == "max-pmi" and has_statistics
        ):  # pages show MaxPMI computed from the statistics
            continue
        whole = [f for f in every if f.kind == file_kind]
        page_files = [f for f in whole if name and name in (f.model, f.benchmark)] or whole
        address = f"{_FILES}#{file_kind}"
        if len(page_files) == 1 or (len(page_files) < len(whole) and len(page_files) <= _LISTED):
            behind += [SourceFiles(f.path, 1, f.sha256, address) for f in page_files]
        elif page_files:
            folders = {f.path.rpartition("/")[0] for f in page_files}
            name_of = f"{folders.pop()}/*.csv*" if len(folders) == 1 else pattern
            behind.append(SourceFiles(name_of, len(page_files), digest(page_files), address))
    return behind


def site(
    store: Store,
    outcome: ReleaseResult,
    every: Sequence[ListedFile],
    corpus: str,
    command: str,
    docs: str,
) -> Site:
    """The site: a report of all results, the studies, and the files.

    ``docs``: path from the site's first page to the documentation's; empty without documentation.
    """
    anatomies = list(starmap(benchmark_anatomy.anatomy, benchmark_anatomy.tables(store, corpus)))

    def pages(facts: Facts) -> Mapping[str, Page]:
        return {
            "studies.html": _studies(facts, outcome, anatomies, docs),
            _FILES: _files(every, command),
        }

    agree = run.summary(outcome)["figures of models"]["agree"]
    links = [
        Link(
            "Studies",
            "studies.html",
            f"{agree:,} printed figures confirmed; what the lean goes with; model size.",
        ),
        Link("Files", _FILES, f"{len(every):,} released files with their SHA-256."),
    ]
    if docs:
        links.append(Link("Documentation", docs, "How to do the same with your text and model."))
    return Site(links, command, lambda _, name: sources(every, name), pages)


def _studies(
    facts: Facts, outcome: ReleaseResult, anatomies: Sequence[BenchmarkAnatomy], docs: str
) -> Page:
    up = docs.rpartition("/")[0]
    links = [
        Link(title, f"{up}/{name}.html" if up else f"{name}.html", f"{says}.")
        for name, (title, says) in STUDIES.items()
        if docs
    ]
    return Page(
        sections=[_published(outcome), *_anatomy(anatomies), *size.sections(facts)],
        title="Studies",
        lede="What else the released files answer, and the documentation's studies.",
        home="index.html",
        links=links,
    )


def _published(outcome: ReleaseResult) -> Section:
    counts = list(_by_table(outcome))
    checked = claims.table(outcome.claims)
    tables = [
        _named("Figures of each table of the paper by outcome", counts),
        _named("Numbers of the paper outside its tables, printed and ours", checked),
    ]
    intro = [line for line in run.lines(outcome) if not line.startswith(f"{len(outcome.models)} m")]
    return Section(
        "published",
        "The published figures, computed again",
        [f"{line[0].upper()}{line[1:]}." for line in intro],
        tables=[replace(one, folded=len(one.rows) > 30) for one in tables if one.rows],
    )


def _by_table(outcome: ReleaseResult) -> list[Row]:
    rows = [row for row in run.shown_rows(outcome) if OUTCOMES[0] in row]
    return [{"table": str(row["table"]), **{o: row[o] for o in OUTCOMES}} for row in rows]


def _anatomy(anatomies: Sequence[BenchmarkAnatomy]) -> list[Section]:
    rows = list(anatomy_tables.shown_rows(anatomies))
    shares, steps = ([r for r in rows if name in r] for name in ("share", "taken away"))
    tables = [
        _named("Share of the mean square of log ratios, 95% intervals over words", shares),
        _named("US without parts: median of the models, and the mean gain", steps),
    ]
    intro = [
        "The mean square of the log ratios of all models, in parts that go with properties of the "
        "sentences. Nothing was changed in a text, so no part is a cause. Intervals are over "
        "words, those of the last column over families of models too.",
        *(line.strip() for anatomy in anatomies for line in anatomy_tables.lines(anatomy)),
    ]
    return [
        Section("anatomy", "What the lean goes with", intro[:1], (), (), tables, more=intro[1:])
    ]


def _named(caption: str, rows: Sequence[Row]) -> PageTable:
    table = rows_table(rows, list(rows[0])) if rows else rows_table([], [])
    return replace(table, caption=caption, searchable=len(rows) > 12)


def _files(every: Sequence[ListedFile], command: str) -> Page:
    scores = KINDS["scores"][1]
    sections = [
        Section(
            "made",
            "How the site is made",
            [
                f"`git clone {_RELEASE}` brings the files, `{command}` computes every page from "
                "them. Nothing else is read, and no page asks for anything from outside.",
                "Each page lists the files behind it, with their SHA-256. For several files it is "
                f"that of their list: `export LC_ALL=C; sha256sum {scores} | sha256sum`.",
            ],
        )
    ]
    for kind, (title, pattern) in KINDS.items():
        if of_kind := [f for f in every if f.kind == kind]:
            n = f"{len(of_kind):,} files" if len(of_kind) > 1 else "1 file"
            intro = [f"{n}, `{pattern}`: SHA-256 `{digest(of_kind)}`."]
            folder = pattern.partition("*")[0].rpartition("/")[0]
            sections.append(
                Section(kind, title, intro, tables=[_file_table(title, folder, of_kind)])
            )
    return Page(
        sections=sections,
        title="Files",
        lede="The released files that every page is computed from.",
        home="index.html",
    )


def _file_table(title: str, folder: str, listed: Sequence[ListedFile]) -> PageTable:
    headings = [f"file in {folder}", "bytes", "SHA-256"]
    rows = [
        [Cell(f.path.removeprefix(f"{folder}/")), count(f.n_bytes), Cell(f.sha256)] for f in listed
    ]
    caption = f"{title}, one by one"
    return PageTable(caption, headings, rows, folded=len(listed) > 12, searchable=len(listed) > 12)
