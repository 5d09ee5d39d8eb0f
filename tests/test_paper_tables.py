"""Tables for papers and the paragraph on methods: escapes, and figures from SQL."""

import csv
import io
import re
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from plumbline.pipelines.report.facts import Facts
from plumbline.pipelines.report.model import Cell, PageTable, count, estimate, shown
from plumbline.pipelines.report.paper import latex, table_text, tables
from plumbline.warehouse.storage.store import Store
from plumbline.warehouse.text.escape import terminal

TEXT = st.text(st.sampled_from("&%$#_{}[]*-`',~^\\<>|−–…≤≥ ab1\n") | st.characters())
#: What a command of LaTeX prints.
COMMANDS = {
    **{"textbackslash": "\\", "textasciitilde": "~", "textasciicircum": "^", "textless": "<"},
    **{"textgreater": ">", "textbar": "|", "textendash": "–", "ldots": "…", "leq": "≤", "geq": "≥"},
}


@pytest.fixture(scope="module")
def found(world: Store) -> dict[str, PageTable]:
    return tables(Facts(world))


def typeset(source: str) -> str:
    """What LaTeX prints of a text, read by its rules; fails on what it would read as its own."""
    out, depth, i = "", 0, 0
    while i < len(source):
        if command := re.compile(r"\\([a-z]+)(?:\{\})?").match(source, i):
            out, i = out + COMMANDS[command[1]], command.end()
        elif source[i] == "\\":
            assert source[i + 1] in "&%$#_{}", source
            out, i = out + source[i + 1], i + 2
        elif math := re.compile(r"\$(−|-|\\leq|\\geq)\$").match(source, i):
            out, i = out + COMMANDS.get(math[1][1:], "−"), math.end()
        else:
            c = source[i]
            assert c not in "&%$#_~^<>|", source
            assert depth or c not in "[]*`", source
            assert source[i : i + 2] not in ("--", "''", ",,"), source
            depth += (c == "{") - (c == "}")
            assert depth >= 0
            out, i = out + c * (c not in "{}"), i + 1
    assert depth == 0
    return out


@given(TEXT)
@example("50% of a_b & <c> --- ''x'' ,, \\\\ $1 ^~ {[*]} −1")
def test_latex_prints_the_text_that_it_was_given(words: str) -> None:
    assert typeset(latex(words)) == terminal(" ".join(words.split()))


@given(st.lists(st.tuples(TEXT, st.none() | st.integers(), st.floats(-9, 9)), max_size=6), TEXT)
def test_every_row_of_latex_has_the_columns_that_the_table_declares(
    rows: list[Any], heading: str
) -> None:
    cells = [
        (
            Cell(word),
            count(n),
            estimate({"value": x, "value_low": x - 9, "value_high": x + 9}, digits=1),
        )
        for word, n, x in rows
    ]
    lines = table_text(PageTable(heading, ["a", heading, "c"], cells), "latex", "t").splitlines()
    (declared,) = (x for line in lines for x in re.findall(r"\\begin\{tabular\}\{(.*)\}$", line))
    body = lines[lines.index("\\midrule") + 1 : lines.index("\\bottomrule")]
    assert len(body) == len(rows)
    for line, (_, _, x) in zip(body, rows, strict=True):
        assert line.endswith(" \\\\")
        assert len(re.findall(r"(?<!\\)&", line)) == len(declared) - 1
        ends = "({} to {})".format(*(shown(x + d, 1).replace("−", "$-$") for d in (-9, 9)))
        assert ends in line


def metric(world: Store, name: str, model: str, subset: str = "all") -> dict[str, Any]:
    (row,) = (
        r
        for r in world.read("metric_value").to_pylist()
        if (r["metric"], r["model"], r["subset"]) == (name, model, subset)
        and r["corpus"] in ("", None, model.replace("model", "text"))
    )
    return row


def test_the_table_of_models_has_the_metrics_of_the_warehouse(
    world: Store, found: dict[str, PageTable]
) -> None:
    rows = list(csv.DictReader(io.StringIO(table_text(found["models"], "csv"))))
    assert {r["model"] for r in rows} == {"model-straight", "model-swapped"}
    for r in rows:
        us, pd = (metric(world, name, r["model"]) for name in ("us", "pd"))
        assert int(r["n"]) == us["n"] == pd["n"]
        columns = {"value": "", "value_low": "_low", "value_high": "_high"}
        for column, ending in columns.items():
            assert float(r[f"US %{ending}"]) == pytest.approx(100 * us[column], rel=1e-12)
            assert float(r[f"PD points{ending}"]) == pytest.approx(pd[column], rel=1e-12)


def test_each_table_can_be_had_in_each_format(found: dict[str, PageTable]) -> None:
    assert any(name.startswith("words-") for name in found)
    assert any(name.startswith("follow-") for name in found)
    for name, one in found.items():
        assert re.fullmatch(r"[a-z0-9.-]{1,64}", name)
        n = len(one.rows)
        assert table_text(one, "latex", name).count("\\\\\n") == n + 1
        assert len(table_text(one, "markdown").splitlines()) == n + 2
        assert len(list(csv.reader(io.StringIO(table_text(one, "csv"))))) == (n + 1 if n else 0)
