"""Versions of a named model: the latest on every page, the paired change, and `--fail-if`."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from plumbline.pipelines.command.main import main
from plumbline.pipelines.report.facts import Facts
from plumbline.pipelines.report.sentences import version_changes
from plumbline.pipelines.report.write import write_report
from plumbline.warehouse.query.connection import rows_of
from plumbline.warehouse.storage.store import Store
from tests.metric_rows import AFTER, BEFORE, fill, interval, pair, score, scored_by, version
from tests.tiny_models import save

_N = 60


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Store:
    """Two versions of `mine` and one other model, measured."""
    store = Store.open(tmp_path_factory.mktemp("versions") / "w")
    for key, ratios in {"old": BEFORE, "new": AFTER}.items():
        version(store, "b", key, ratios)
    fill(store, "model", [scored_by("other", key="other")], "other")
    fill(store, "pair_score", [score("b", f"p{k}", 0.1, "other", "other") for k in range(_N)])
    assert main(["measure", "--warehouse", str(store.root)]) == 0
    return store


def test_a_change_is_paired_with_the_interval_over_pairs(store: Store) -> None:
    """Each pair is a cluster, the interval Wilson's at the error of their differences."""
    (change,) = version_changes(Facts(store))
    differences = 100 * (np.sign(AFTER) - np.sign(BEFORE))
    found = [change[name] for name in ("change_low", "change", "change_high")]
    assert found == pytest.approx(interval(differences, (-200, 200)), rel=1e-6)
    assert change["name"] == "mine"
    assert (change["pd_before"], change["pd"]) == pytest.approx((-10, 25))


def test_only_the_latest_version_is_ranked_and_on_the_pages(store: Store, tmp_path: Path) -> None:
    labels = {r["model_key"]: r["label"] for r in rows_of(store.root, "FROM model_label")}
    (version,) = rows_of(store.root, "FROM model_version WHERE NOT is_latest")
    assert labels == {"new": "mine", "old": f"mine ({version['scored_at']:%Y-%m-%d})"} | {
        "other": "other"
    }
    assert set(store.read("model_rank")["model_key"].to_pylist()) == {"new", "other"}
    page, _ = write_report(store, tmp_path)
    pages = page.read_text() + (tmp_path / "appendix.html").read_text()
    assert "mine on b since" in pages and labels["old"] not in pages


def test_missing_scores_are_said_of_the_latest_version_alone(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    store = Store.open(tmp_path / "w")
    fill(store, "benchmark_pair", [pair("b", f"p{k}") for k in range(_N + 1)], "b")
    for key, ratios in {"old": BEFORE, "new": AFTER}.items():
        version(store, "b", key, ratios)
    assert main(["measure", "--warehouse", str(store.root)]) == 0
    assert "".join(capsys.readouterr()).count(f"has scores of {_N} of the {_N + 1} pairs") == 1


@pytest.mark.parametrize(
    ("most", "status", "said"),
    [("5", 6, "more than 5 points"), ("34.5", 0, "perhaps more than 34.5"), ("40", 0, "mine on b")],
)
def test_fail_if_fails_only_where_the_whole_interval_lies_beyond(
    store: Store, most: str, status: int, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    rule = ["--fail-if", f"pd changes by more than {most}"]
    assert main(["measure", "--warehouse", str(store.root), *rule]) == status
    assert said in "".join(capsys.readouterr())
    assert main(["runs", "--warehouse", str(store.root)]) == 0
    assert "mine on b since" in capsys.readouterr().out


def test_a_name_is_no_part_of_the_key(tmp_path: Path) -> None:
    """A later name is that of the key that was scored without one; a name is for one model."""
    save("neox", tmp_path / "tiny")
    store = Store.open(tmp_path / "w")
    version(store, "b", "old", BEFORE)
    command = ["score", "--model", str(tmp_path / "tiny"), "--benchmark", "b", "--limit", "2"]
    command += ["--warehouse", str(store.root)]
    assert main(command) == main([*command, "--name", "mine"]) == 0
    names = store.read("model")["name"].to_pylist()
    assert names == ["mine", "mine"] and store.read("pair_score").num_rows == len(BEFORE) + 2
    assert main([*command, "--model", "other", "--name", "mine"]) == 2
