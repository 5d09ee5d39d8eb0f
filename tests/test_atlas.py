"""The atlas of a release: every page and link, the files behind it, and the pages in a browser."""

from __future__ import annotations

import hashlib
import re
import subprocess
from collections.abc import Iterator
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pytest

from plumbline.pipelines.command.main import main
from plumbline.pipelines.reproduce import atlas
from plumbline.warehouse.storage.store import Store
from tests.browser import Browser, browser, program, violations
from tests.conftest import REPOSITORY
from tests.released_files import PAIRS, score_rows, write_scores
from tests.test_explorer import records
from tests.test_reproduce import released

needs_browser = pytest.mark.skipif(
    program() is None, reason="no Chromium: apt-get install chromium"
)
#: The site of all 28 models is smaller than this, in bytes.
MOST_BYTES = 150_000_000
PAGES = ("index", "models", "words", "pairs", "studies", "files", "appendix")


class Addresses(HTMLParser):
    """What a page links or loads, its anchors, and how deep its elements are left open."""

    def __init__(self, page: Path) -> None:
        super().__init__()
        self.found, self.anchors = list[str](), set[str]()
        self.feed(page.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        for name, value in attrs:
            if name in ("href", "src") and value and not value.startswith("data:"):
                self.found.append(value)
            if name == "id" and value:
                self.anchors.add(value)


def check_links(site: Path) -> int:
    """All addresses are relative and lead to a file of the site and to an anchor of it."""
    pages = {page.resolve(): Addresses(page) for page in site.rglob("*.html")}
    n = 0
    for page, of in pages.items():
        for address in of.found:
            assert not re.match(r"[a-z]+:|/", address), (page, address)
            path, _, anchor = address.partition("#")
            to = (page.parent / unquote(path)).resolve() if path else page
            assert to.is_file() and to.is_relative_to(site.resolve()), (page, address)
            if anchor and to.stem not in ("words", "pairs"):  # these search what stands there
                assert anchor in pages[to].anchors, (page, address)
            n += 1
    return n


@pytest.fixture(scope="module")
def release(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Five pairs of USE-5, three words, and two models of a family and one of another."""
    where = released(tmp_path_factory.mktemp("released") / "small", score_rows())
    (where / "results" / "5words" / "revised_templates__scores__org__m.csv").unlink()
    for k, name in enumerate(("EleutherAI__pythia-70m", "EleutherAI__pythia-1.4b", "org__other")):
        rows = score_rows(name)
        for i, row in enumerate(rows):
            row["F_logprob"] = f"-{2 + k + i % 2}.5"
        same = {row["template"]: row["F_logprob"] for row in reversed(rows)}
        rows = [{**row, "F_logprob": same[row["template"]]} for row in rows]
        write_scores(where / "results", rows, f"{name}.csv")
    return where


@pytest.fixture(scope="module")
def site(release: Path) -> Path:
    out = release / "site"
    common = ["--data", release, "--warehouse", release / "w", "--out", out / "atlas"]
    (out / "index.html").parent.mkdir()
    (out / "index.html").write_text("the documentation")
    for name in atlas.STUDIES:
        (out / f"{name}.html").write_text("a study")
    words = ["reproduce", "atlas", *map(str, common), "--docs", "../index.html"]
    assert main(words) == 0
    return out


@pytest.mark.slow
def test_all_links_are_relative_and_lead_somewhere(site: Path) -> None:
    assert {f"{name}.html" for name in PAGES} <= {p.name for p in (site / "atlas").glob("*.html")}
    assert check_links(site) > 150
    first = Addresses(site / "atlas" / "index.html").found
    assert {"models.html", "studies.html", "files.html", "../index.html"} <= set(first)


def test_each_page_names_the_files_behind_it(site: Path, release: Path) -> None:
    """Their hashes are those of hashlib, of several that of what `sha256sum` prints of them."""
    words = release / "data" / "pmi_file_w_counts.csv"
    scores = sorted((release / "results").glob("*/*.csv*"))
    own = [path for path in scores if "70m" in path.name]
    assert len(scores) == 3 and len(own) == 1
    printed = subprocess.run(
        ["sha256sum", *(path.relative_to(release).as_posix() for path in scores)],
        cwd=release,
        capture_output=True,
        check=True,
    ).stdout
    every = hashlib.sha256(printed).hexdigest()
    listed = (site / "atlas" / "files.html").read_text()
    for path in (words, *scores):
        assert hashlib.sha256(path.read_bytes()).hexdigest() in listed
    for page in (site / "atlas").rglob("*.html"):
        text = page.read_text()
        assert hashlib.sha256(words.read_bytes()).hexdigest() in text, page
        assert "plumbline reproduce atlas --data small" in text, page
        if page.parent.name != "models":
            assert every in text and "(3 files)" in text, page
    of_model = (site / "atlas" / "models" / "eleutherai-pythia-70m.html").read_text()
    assert hashlib.sha256(own[0].read_bytes()).hexdigest() in of_model and every not in of_model


def test_a_word_says_where_benchmarks_have_it(site: Path) -> None:
    """Counted here from the pairs themselves: tea is in two, and one was made for it."""
    held = records(site / "atlas" / "words.html")
    sentences = [template for template, _, _ in PAIRS]
    n_with = {w: sum(w in s for s in sentences) for w in ("tea", "key", "drank")}
    n_for = {w: sum(w == made for _, made, _ in PAIRS) for w in n_with}
    for word, n in n_with.items():
        ((k, n_held, n_made, _),) = held[word]["sets"]
        assert (k, n_held, n_made) == (0, n, n_for[word])
    assert held["key"]["sets"][0][3] == 2, "the larger of its sentences' deltas"
    assert "60 times, 600,000.0 per million kept tokens" in held["tea"]["leans"]["0"]["counts"]


def test_models_stand_by_family_and_size(site: Path) -> None:
    text = (site / "atlas" / "models.html").read_text()
    names = re.findall(r'<th scope="row"><a href="models/([\w.-]+)\.html">', text)
    assert names == ["eleutherai-pythia-70m", "eleutherai-pythia-1.4b", "org-other"]
    assert ">ranks by US</th>" in text


def test_what_has_no_name_is_no_benchmark(release: Path) -> None:
    found = atlas.files(release)
    assert {f.kind for f in found} == {"statistics", "pairs", "scores"}
    assert {f.benchmark for f in found if f.kind != "statistics"} == {"use-5"}
    assert [s.n_files for s in atlas.sources(found)] == [1, 1, 3]
    assert [s.n_files for s in atlas.sources(found, "org/other")] == [1, 1, 1]
    pairs = next(f for f in found if f.kind == "pairs")
    released = [*(f for f in found if f.kind != "statistics"), replace(pairs, kind="max-pmi")]
    assert [s.n_files for s in atlas.sources(released)] == [1, 1, 3], "MaxPMI, without statistics"
    assert [s.n_files for s in atlas.sources([*found, replace(pairs, kind="max-pmi")])] == [1, 1, 3]


@pytest.fixture(scope="module")
def driven(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    with browser(tmp_path_factory.mktemp("profile")) as started:
        yield started


@needs_browser
@pytest.mark.parametrize("name", PAGES)
def test_axe_finds_nothing_and_it_fits(driven: Browser, site: Path, name: str) -> None:
    """Light and wide, dark and as wide as a phone, from the disk, asking for nothing outside."""
    for scheme, width in (("light", 1200), ("dark", 390)):
        driven.colours(scheme)
        driven.resize(width)
        driven.open(site / "atlas" / f"{name}.html")
        assert driven.ask("document.documentElement.scrollWidth") <= width
        assert violations(driven) == []
    asked: list[dict[str, Any]] = driven.events
    sent = [e["params"]["request"]["url"] for e in asked if e["method"].endswith("BeSent")]
    assert {url.partition(":")[0] for url in sent} <= {"file", "data"}
    assert not [e for e in asked if e["method"] in ("Log.entryAdded", "Runtime.exceptionThrown")]


@needs_browser
def test_one_navigation_at_a_time(driven: Browser, site: Path) -> None:
    """The first page has its links as boxes, on a phone as a line like other pages."""
    driven.open(site / "atlas" / "index.html")
    shown = (
        "[...document.querySelectorAll('nav')].filter(n => n.offsetHeight).map(n => n.className)"
    )
    for width, kinds in ((1200, ["doors"]), (390, ["site narrow"])):
        driven.resize(width)
        assert driven.ask(shown) == kinds


def test_make_site_says_what_it_needs(tmp_path: Path) -> None:
    stamp = tmp_path / "venv" / ".installed"
    stamp.parent.mkdir()
    stamp.touch()
    command = ["make", "--no-print-directory", "site", f"VENV={stamp.parent}"]
    done = subprocess.run(
        [*command, f"PLUMBLINE_DATA={tmp_path}"], cwd=REPOSITORY, capture_output=True, text=True
    )
    assert (
        done.returncode == 2 and "clone of https://github.com/ucinlp/unstereo-eval" in done.stderr
    )


@pytest.mark.slow
@pytest.mark.reference
def test_the_whole_release(data: Path, tmp_path: Path) -> None:
    """All 28 models and every word, in pages that lead somewhere and fit on a free host."""
    common = ["--data", data / "unstereo-eval", "--warehouse", tmp_path / "w"]
    assert main(["reproduce", "atlas", *map(str, common), "--out", str(tmp_path / "site")]) == 0
    assert check_links(tmp_path / "site") > 9_000
    assert sum(p.stat().st_size for p in (tmp_path / "site").rglob("*") if p.is_file()) < MOST_BYTES
    held = records(tmp_path / "site" / "words.html")
    deltas = Store.open(tmp_path / "w").read("word_delta").to_pylist()
    assert len(deltas) == 65_914 and len(held) >= len(deltas)
    for row in deltas:
        if not row["word"].isprintable():  # control characters are shown escaped
            continue
        assert held[row["word"]]["leans"]["0"]["lean"][0] == round(row["delta_nats"], 5)
    text = (tmp_path / "site" / "models.html").read_text()
    assert len(re.findall(r">\d+\.\d \(\d+\.\d to \d+\.\d\)<", text)) == 28 * 5, "US"
    n_pairs = len(records(tmp_path / "site" / "pairs.html", "keys"))
    assert n_pairs == Store.open(tmp_path / "w").read("benchmark_pair").num_rows
