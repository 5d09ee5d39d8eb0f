"""Plots for papers: as wide as asked, fonts inside, in type that can be read."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Iterator
from pathlib import Path
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from plumbline.pipelines.command.main import main
from plumbline.pipelines.report.facts import Facts
from plumbline.pipelines.report.model import Figure
from plumbline.pipelines.report.paper.figure_files import _FIRST, figure_files, figures, inches
from plumbline.pipelines.report.plots.painter import FORMATS, painted, pixels
from plumbline.pipelines.report.plots.svg import (
    FEMALE,
    MALE,
    NEUTRAL,
    Panel,
    Sheet,
    drawn_on,
    grid,
    svg,
)
from plumbline.pipelines.report.sections import SECTIONS
from plumbline.pipelines.report.sections.preference import _pd_bars
from plumbline.warehouse.query.connection import connect
from plumbline.warehouse.storage.store import Store

NAMES = "{http://www.w3.org/2000/svg}"


@pytest.fixture(scope="module")
def on_page(world: Store) -> dict[str, Figure]:
    return figures(Facts(world))


@pytest.mark.parametrize("width", ["3.3in", "84mm"])
@pytest.mark.slow
def test_a_pdf_is_as_wide_as_asked_with_its_fonts_inside(world: Store, width: str) -> None:
    with drawn_on(Sheet(pixels(inches(width)))):
        panel = Panel("log ratio in nats", "pairs")
        panel.line([0, 1], [0, 1], "#0072B2", label="naïve − é")
        pdf = painted(svg("of a paper", [panel]), "pdf", inches(width))
    (box,) = re.findall(rb"/MediaBox \[ 0 0 ([0-9.]+) ([0-9.]+) \]", pdf)
    assert float(box[0]) == pytest.approx(72 * inches(width), abs=0.01) and float(box[1]) > 50
    assert b"/FontFile2" in pdf and b"/Type3" not in pdf
    assert b"/CreationDate" not in pdf, "the same plot gives the same bytes"


@pytest.mark.slow
def test_every_figure_of_the_report_can_be_had_and_its_type_is_of_eight_points(
    world: Store, on_page: dict[str, Figure], tmp_path: Path
) -> None:
    narrow = figures(Facts(world), Sheet(pixels(3.3), False))
    assert list(on_page) == list(narrow) and len(narrow) >= 10
    for name, one in narrow.items():
        root = ElementTree.fromstring(one.svg)
        width, height = (float(n) for n in root.attrib["viewBox"].split()[2:])
        assert width == pytest.approx(pixels(3.3), abs=0.5), name
        assert "which sentence is preferred" not in one.svg, "a title inside"
        sizes = {float(e.attrib["font-size"]) for e in root.iter(f"{NAMES}text")}
        points = {size * 3.3 * 72 / width for size in sizes}
        assert min(points) > 7.2 and max(points) < 9, name
        for x, y, _ in _texts(root):
            assert 0 <= x <= width and -height <= y <= height, name
    for form in FORMATS:
        out = tmp_path / f"delta.{form}"
        arguments = [
            "report",
            "figure",
            "delta-she-he",
            "--warehouse",
            str(world.root),
            "--out",
            str(out),
        ]
        assert main(arguments) == 0 and out.stat().st_size > 2000
    picture = Image.open(tmp_path / "delta.png").convert("RGB")
    assert picture.width == 1980 and picture.getpixel((0, 0)) == (255, 255, 255)
    assert {"#D55E00".lower(), "#0072B2".lower()} <= set(
        re.findall(r"#[0-9a-f]{6}", (tmp_path / "delta.svg").read_text())
    )


def _texts(root: ElementTree.Element) -> Iterator[tuple[float, float, str]]:
    for e in root.iter(f"{NAMES}text"):
        yield float(e.attrib["x"]), float(e.attrib["y"]), e.text or ""


def test_a_bar_of_pd_has_a_colour_where_its_interval_excludes_0() -> None:
    clear, unclear, other = (9.0, 5.0, 13.0), (2.0, -2.0, 6.0), (-7.0, -11.0, -3.0)
    rows = [
        {"model": name, "model_key": name, "groups": "female/male", "n": 9}
        | dict(zip(("value", "value_low", "value_high"), values, strict=True))
        for name, values in (("a", clear), ("b", unclear), ("c", other))
    ]
    drawn = _pd_bars(rows, "made")
    for name, colour in (("a", FEMALE), ("b", NEUTRAL), ("c", MALE)):
        (y,) = re.findall(rf'y="([0-9.]+)"[^>]*>{name}</text>', drawn)
        (bar,) = re.findall(
            rf'<path fill="{colour}" d="M[0-9.]+ ([0-9.]+)H[0-9.]+V([0-9.]+)', drawn
        )
        assert min(map(float, bar)) < float(y) < max(map(float, bar)), name


def test_a_title_is_inside_when_asked(world: Store, on_page: dict[str, Figure]) -> None:
    assert "which sentence is preferred" in on_page["pd-made"].svg
    with_title = figure_files(Facts(world), "pd-made", "png", has_title=True)[".png"]
    pictures = [
        Image.open(io.BytesIO(f))
        for f in (with_title, figure_files(Facts(world), "pd-made", "png")[".png"])
    ]
    assert pictures[0].height > pictures[1].height


def test_a_plot_comes_with_its_data_and_what_they_are(
    world: Store, on_page: dict[str, Figure], tmp_path: Path
) -> None:
    """The CSV has the rows of the query, which the JSON beside it has with units and versions."""
    out = tmp_path / "pd.pdf"
    assert (
        main(["report", "figure", "pd-made", "--warehouse", str(world.root), "--out", str(out)])
        == 0
    )
    about = json.loads(out.with_suffix(".metadata.json").read_text("utf-8"))
    (again,) = [connect(world.root).sql(about["query"].rstrip(";")).to_arrow_table().to_pylist()]
    with out.with_suffix(".csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == about["n_rows"] == len(again)
    values = sorted(float(row["value"]) for row in rows)
    assert values == sorted(row["value"] for row in again)
    assert list(about["columns"]) == list(rows[0]) and about["columns"]["epsilon_nats"] == "nats"
    assert about["shows"] == on_page["pd-made"].alt and "duckdb" in about["versions"]


def test_a_plot_asked_for_by_name_is_that_of_the_whole_report(
    world: Store, on_page: dict[str, Figure]
) -> None:
    for prefix in ("slopes", "pd", "delta"):
        name = next(stem for stem in on_page if stem.startswith(prefix))
        found = figures(Facts(world), name=name)
        assert found[name].svg == on_page[name].svg and len(found) < len(on_page), name


def test_a_section_declares_what_its_names_begin_with(on_page: dict[str, Figure]) -> None:
    """Else `figure NAME` would leave out the section that has it."""
    known = {*_FIRST}
    for name in SECTIONS.names():
        declared = SECTIONS.load(name).NAMES
        known |= {*declared}
        written = re.findall(r"(?:stem|Section)\(\s*\"([^\"]*)\"", SECTIONS.text(name))
        assert all(one.startswith(declared) for one in written), (name, written)
    assert all(stem.startswith(tuple(known)) for stem in on_page)


@given(st.integers(150, 900), st.integers(1, 4), st.text(max_size=90), st.booleans())
def test_panels_stay_on_any_sheet(width: int, n: int, label: str, is_grid: bool) -> None:
    with drawn_on(Sheet(width)):
        panels = [Panel(label, label) for _ in range(n)]
        for panel in panels:
            panel.marks([1.0, 2.0], [2.0, 4.0], "#123456", label=label)
        drawn = grid(label, [(label, p) for p in panels], n) if is_grid else svg(label, panels)
    root = ElementTree.fromstring(drawn)
    high = float(root.attrib["height"])
    marks = [e for e in root.iter(f"{NAMES}circle") if e.attrib["cx"] != "12.0"]
    assert len(marks) == 2 * n
    for e in marks:
        assert 0 < float(e.attrib["cx"]) < width and 0 < float(e.attrib["cy"]) < high


def test_figures_are_listed_and_a_wrong_name_or_format_says_which_exist(
    world: Store, on_page: dict[str, Figure], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["report", "figure", "--warehouse", str(world.root)]) == 0
    listed = [line.split()[0] for line in capsys.readouterr().out.splitlines() if "│" in line]
    assert set(on_page) == set(listed)
    assert main(["report", "figure", "pd-mad", "--warehouse", str(world.root)]) == 2
    assert "did you mean pd-made" in " ".join(capsys.readouterr().err.split())
    assert (
        main(["report", "figure", "pd-made", "--format", "gif", "--warehouse", str(world.root)])
        == 2
    )
    said = capsys.readouterr().err
    assert all(f"'{form}'" in said for form in FORMATS)
