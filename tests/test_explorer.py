"""The searches of words and of sentence pairs: their figures against the tables."""

import json
import math
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from plumbline.jobs.association.associations import associate
from plumbline.jobs.evidence.explanation import explain, explain_candidates, explain_top
from plumbline.jobs.ingest.count_corpus import count_corpus
from plumbline.pipelines.report.model import shown
from plumbline.pipelines.report.write import write_report
from plumbline.warehouse.query.connection import rows_of
from plumbline.warehouse.storage.store import Store
from plumbline.warehouse.text.escape import terminal
from tests.metric_rows import association, delta, fill, pair, score, scored_by
from tests.test_why_output import SOURCES, texts

EPSILON = math.log(1.65)
MODELS = ("model-a", "model-b", "model-c")
#: Of the pair `plain/0`: a clear preference each way, and one just within epsilon.
RATIOS = (2.0, -1.25, EPSILON - 1e-4)
HOSTILE = "The <b>nurse</b> </script> \x1b[2J saw {0}."


def sentences(template: str, a: str = "she", b: str = "he") -> dict[str, object]:
    return {"sentence_a": template.format(a), "sentence_b": template.format(b)}


def explored(top: Path) -> Store:
    """Three benchmarks, three models and a corpus of nasty text; only `word3` has enough pairs."""
    store, path = Store.open(top / "w"), top / "a.jsonl"
    n_of = {f"word{k}": 6 if k == 3 else 2 for k in range(12)}
    made = [
        pair("made", f"{word}-{i}", word=word, **sentences(f"The {word} saw {{0}}."))
        for word, n in n_of.items()
        for i in range(n)
    ]
    plain = [
        pair("plain", "0", word="Nurse", **sentences("The nurse said {0} left.")),
        pair("plain", "1", is_natural=False, **sentences("The artist said {0} paid.")),
        pair("plain", "2", is_natural=True, **sentences("Art is what {0} paid for.")),
        pair("plain", "3", **sentences(HOSTILE)),
    ]
    groups = {"group_a": "she", "group_b": "they"}
    text = sentences("The nurse said {0} left.", "she", "that they")
    other = [pair("other", "0 she/they", word="nurse", **groups, **text)]
    for rows in (made, plain, other):
        fill(store, "benchmark_pair", rows, unit=str(rows[0]["benchmark"]))
    rng = np.random.default_rng(3)
    for model, ratio in zip(MODELS, RATIOS, strict=True):
        fill(store, "model", [scored_by(model)], unit=model)
        ratios = [ratio, *rng.normal(size=2), -math.inf]
        scored = [score("plain", str(k), ratio, model) for k, ratio in enumerate(ratios)]
        fill(store, "pair_score", scored, unit=f"plain {model}")
        scored = [score("made", str(p["pair_id"]), rng.normal(), model) for p in made]
        fill(store, "pair_score", scored, unit=f"made {model}")
    fill(store, "pair_score", [score("other", "0 she/they", -3.0, MODELS[0])], unit="other")
    without_word = association("plain", "2", 0.4, "imported") | {"max_pmi_word": None}
    known = association("plain", "0", -0.75, "imported")
    fill(store, "pair_association", [known, without_word])
    words = ("nurse", "left", "art", *n_of)
    fill(store, "word_delta", [delta(word, rng.normal(), "imported") for word in words])
    with path.open("w") as file:
        for k, line in enumerate(texts(np.random.default_rng(0), 90)):
            # Some words of the benchmark are in the text, too.
            record = {"text": f"{line} word3 she", "meta": {"pile_set_name": SOURCES[k % 3]}}
            file.write(json.dumps(record) + "\n")
    count_corpus(store, "c", (path,))
    associate(store, "c")
    explain_top(store, "c", 30)
    explain_candidates(store, "c")
    explain(store, "c", ["tea"])
    return store


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Store:
    return explored(tmp_path_factory.mktemp("explored"))


@pytest.fixture(scope="module")
def site(store: Store, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_report(store, tmp_path_factory.mktemp("site") / "site")[0].parent


def things(page: Path) -> dict[str, dict[str, Any]]:
    """What the page and its files hold of each thing: text, note, blocks, and tables by caption."""
    (text,) = re.findall(r'id="index-">(.*?)</script>', page.read_text(), re.DOTALL)
    index, held = json.loads(text), list[Any]()
    for k in range(-(-len(index["things"]) // index["size"])):
        script = (page.parent / page.stem / f"{k}.js").read_text()
        called = re.fullmatch(rf"plumblineBlocks\({k}, (.*)\);\n", script, re.DOTALL)
        assert called and "<" not in script
        held += json.loads(called[1])
    found = dict[str, dict[str, Any]]()
    for (key, parts, note), blocks in zip(index["things"], held, strict=True):
        found[key] = {"text": parts, "note": note, "said": []}
        for block in blocks:
            if isinstance(block, str) or isinstance(block[0], str):
                found[key]["said"].append(block)
            else:
                caption, headings, names = index["tables"][block[0]]
                rows = list(map(list, zip(names, block[1], strict=True))) if names else block[1]
                found[key][caption] = [headings, *rows]
    assert len(found) == len(index["things"])
    return found


def test_words_say_what_the_tables_hold(store: Store, site: Path) -> None:
    held = things(site / "words.html")
    leans = rows_of(store, "FROM word_lean SEMI JOIN shown_contrast USING (corpus, contrast)")
    assert {row["word"] for row in leans} == set(held)
    for row in leans:
        said = [text for text in held[row["word"]]["said"] if isinstance(text, str)]
        (of_text,) = (text for text in said if f" in {row['corpus']}" in text)
        if row["delta_nats"] is not None:
            assert f"{shown(row['delta_nats'], signed=True)} nats" in of_text
            figure = shown(row["delta_nats"], signed=True)
            assert figure in held[row["word"]]["note"] or "0.00" in figure
        if row["delta_nats_low"] is not None and row["delta_nats"] is not None:
            ends = (shown(row[f"delta_nats_{end}"], signed=True) for end in ("low", "high"))
            assert f"(95% interval {' to '.join(ends)} over " in of_text
            assert row["over"].rstrip("s") in of_text
        counts = f"{row['n_pair_f']:,} near she, {row['n_pair_m']:,} near he."
        assert any(text.endswith(counts) for text in said)
    for row in rows_of(store, "FROM word_snippet WHERE place <= 3"):
        where = terminal(row["file"] or row["source"])
        lines = held[row["word"]]["Sentences drawn at random in c"]
        assert any(line[0] == row["target"] and line[2] == where for line in lines), row["word"]


def test_pairs_say_what_each_model_prefers(store: Store, site: Path) -> None:
    held = {k: v for k, v in things(site / "pairs.html").items() if not k.startswith("made")}
    scores: dict[str, dict[str, float]] = {key: {} for key in held}
    for row in rows_of(store, "FROM pair_score WHERE benchmark <> 'made'"):
        ratio = row["logprob_a_nats"] - row["logprob_b_nats"]
        scores[f"{row['benchmark']}/{row['pair_id']}"][row["model"]] = ratio
    for key, pair_held in held.items():
        sides = ("she", "they") if key.startswith("other") else ("female", "male")
        _, *lines = pair_held["What each model prefers"]
        assert [model for model, _ in lines] == sorted(scores[key])
        preferred = []
        for model, cell in lines:
            ratio = scores[key][model]
            side = "neither" if abs(ratio) <= EPSILON else sides[ratio < 0]
            if math.isfinite(ratio):
                assert cell == f"{shown(ratio, 3, signed=True)} {side}"
                preferred.append(side)
            else:
                assert cell == "no score"
        counts = " · ".join(f"{preferred.count(side)} {side}" for side in sides)
        assert pair_held["note"].endswith(f" · {counts} of {len(lines)}")
    sizes = [
        abs(np.mean([*scores[key].values()])) for key in held if key not in ("plain/1", "plain/3")
    ]
    assert sizes == sorted(sizes, reverse=True), "strongest preferences first"
    assert list(held)[-1] == "plain/1", "unnatural pairs last"
