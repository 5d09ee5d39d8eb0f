"""Charts for papers: as wide as asked, fonts inside, with their data."""

import csv
import json
import re
from pathlib import Path
from xml.etree import ElementTree

import pytest

from plumbline.pipelines.command.main import main
from plumbline.pipelines.report.charts import chart_forms
from plumbline.pipelines.report.facts import Facts
from plumbline.pipelines.report.model import Figure
from plumbline.pipelines.report.paper import figures
from plumbline.warehouse.query.connection import connect
from plumbline.warehouse.storage.store import Store

NAMES = "{http://www.w3.org/2000/svg}"


@pytest.fixture(scope="module")
def on_page(world: Store) -> dict[str, Figure]:
    return figures(Facts(world))


@pytest.mark.slow
def test_every_chart_of_the_report_can_be_had_as_wide_as_asked(on_page: dict[str, Figure]) -> None:
    assert len(on_page) >= 10
    for name, figure in on_page.items():
        for inches in (3.3, 6.0):
            pdf = chart_forms.on_paper(figure.specification, "pdf", inches)
            box = re.findall(rb"/MediaBox *\[ *0 0 ([0-9.]+) ([0-9.]+)", pdf)[0]
            assert float(box[0]) == pytest.approx(72 * inches, abs=2), name
            assert b"/FontFile" in pdf or b"/FontDescriptor" in pdf or b"ObjStm" in pdf
        root = ElementTree.fromstring(chart_forms.on_paper(figure.specification, "svg", 3.3))
        words = [e.text for e in root.iter(f"{NAMES}text")]
        assert words and chart_forms.INK not in ElementTree.tostring(root, "unicode"), name


def test_a_file_of_each_format_comes_with_its_data(
    world: Store, on_page: dict[str, Figure], tmp_path: Path
) -> None:
    """The CSV has the rows of the query, which the specification has with units and versions."""
    for form in ("pdf", "svg", "png"):
        out = tmp_path / f"pd.{form}"
        arguments = ["report", "figure", "pd-made", "--warehouse", str(world.root)]
        assert main([*arguments, "--out", str(out)]) == 0 and out.stat().st_size > 2000
    png = (tmp_path / "pd.png").read_bytes()
    assert png.startswith(b"\x89PNG") and abs(int.from_bytes(png[16:20], "big") - 1980) < 60
    spec = json.loads((tmp_path / "pd.vl.json").read_text("utf-8"))
    about = spec["usermeta"]
    (again,) = [connect(world.root).sql(about["query"].rstrip(";")).to_arrow_table().to_pylist()]
    with (tmp_path / "pd.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == about["n_rows"] == len(again)
    assert sorted(float(row["value"]) for row in rows) == sorted(row["value"] for row in again)
    assert list(about["columns"]) == list(rows[0]) and about["columns"]["epsilon_nats"] == "nats"
    assert spec["description"] == on_page["pd-made"].caption and "duckdb" in about["versions"]


def test_numbers_that_json_lacks_and_text_that_steers_are_neither_lost_nor_run() -> None:
    rows = [{"x": float("nan"), "name": "a\x1b[2J<script>"}, {"x": 1 / 3, "name": "b"}]
    values = chart_forms.data(rows)["values"]
    assert list(values) == [
        {"x": None, "name": "a\\x1b[2J<script>"},
        {"x": 0.33333333, "name": "b"},
    ]
