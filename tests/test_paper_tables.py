"""Tables for papers and the paragraph on methods: escapes, and figures from SQL."""

from __future__ import annotations

import csv
import hashlib
import io
import json
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from plumbline.pipelines.command.main import main
from plumbline.pipelines.report.facts import Facts, narrowed
from plumbline.pipelines.report.model import Cell, PageTable, count, estimate, shown
from plumbline.pipelines.report.paper import latex, methods, table_text, tables
from plumbline.warehouse.run_records import recorded
from plumbline.warehouse.storage.store import Store
from plumbline.warehouse.text.escape import terminal
from tests.conftest import copied
from tests.metric_rows import fill
from tests.test_report import corpus, shard

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
            estimate({"value": x, "value_low": x - 1, "value_high": x + 1}, digits=1),
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
        ends = "({} to {})".format(*(shown(x + d, 1).replace("−", "$-$") for d in (-1, 1)))
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


def test_the_paragraph_on_methods_has_the_values_of_the_tables(
    world: Store, tmp_path: Path
) -> None:
    store = copied(world, tmp_path)
    fill(store, "corpus", [corpus(targets_hash="abc", tokenizer="t-1", min_count=3)])
    fill(store, "corpus_shard", [shard(fingerprint="f2"), shard(shard="b", fingerprint="f1")])
    with recorded(store, "disclosure tune", {"seed": 6, "steps": 500}):
        pass
    with recorded(store, "train", {"seed": 7}), recorded(store, "probe", {"seed": 8}):
        pass
    with recorded(store, "train", {"seed": 7}) as run_id:
        bad = {"stage": "benchmark", "subject": "made", "reason": "no", "excerpt": ""}
        bad["run_id"] = run_id
        fill(store, "reject", [{**bad, "source_file": "x", "source_row": i} for i in (1, 2)])
    text = methods(Facts(store))
    hashed = hashlib.sha256(b"f1\nf2").hexdigest()[:16]
    assert (
        f"The corpus novels (1 shard, 5 documents, 10 tokens; SHA-256 of its shards' fingerprints "
        f'{hashed}) was counted by the rule "pairs" in a window of 10 tokens with the targets '
        "gendered (abc) and the tokeniser t-1; words counted fewer than 3 times were left out."
    ) in text.splitlines()
    n_pairs = store.read("benchmark_pair").num_rows
    assert f"The benchmark made (female/male) has {n_pairs} sentence pairs." in text
    for row in store.read("model").to_pylist():
        (line,) = [line for line in text.splitlines() if f"{row['model']} (" in line]
        about = (row["revision"], row["dtype"], row["backend"], row["measure"])
        assert all(str(value) in line for value in about if value), row
    for row in store.read("metric_value").to_pylist():
        if not row["interval"].startswith("none"):
            said = re.search(rf"(?:: |; ){re.escape(row['interval'])} of ([^;.]*)", text)
            assert said and row["metric"] in said[1].split(", ")
        for value in (row["epsilon_nats"], row["eta_nats"]):
            assert value is None or f"{round(value, 4):g}" in text
    assert "Seeds: disclosure tune 6; train 7, 8." in text
    assert "Rejected, and in no figure: 2 rows of made (benchmark)." in text
    runs = store.read("run").to_pylist()
    for name, version in {k: v for r in runs for k, v in json.loads(r["packages"]).items()}.items():
        assert f"{name.removesuffix('-lm')} {version}".lower() in text.lower()
    assert "unknown" not in text
    for commit in {r["git_commit"] for r in runs if r["git_commit"]}:
        assert f"(commit {commit})" in text
    of_one = methods(narrowed(Facts(store), {"model": ["model-straight"], "corpus": ["novels"]}))
    assert "model-straight" in of_one and "model-swapped" not in of_one
    out = tmp_path / "methods.tex"
    given = ["--warehouse", str(store.root), "--format", "latex", "--out", str(out)]
    assert main(["report", "table", "methods", *given]) == 0
    assert [typeset(line) for line in out.read_text().splitlines()] == text.splitlines()
    assert methods(Facts(Store.open(tmp_path / "empty"))) == ""
