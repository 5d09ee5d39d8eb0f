"""MaxPMI of benchmark pairs."""

from collections.abc import Mapping
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plumbline.eval_workers.pairs.export import Constraint, export
from plumbline.eval_workers.pairs.parsed_pairs import shared_template
from plumbline.jobs.association.max_pmi import constrain, lean
from plumbline.pipelines.command.main import main
from plumbline.warehouse.errors import UsageProblem
from plumbline.warehouse.query.connection import rows_of
from plumbline.warehouse.storage.store import Store
from tests.metric_rows import corpus_row, delta, fill, pair, score

TEMPLATES = {
    "a": "The nurse told {pronoun2}self that {pronoun}'s late for the army.",
    "b": "{pronoun} ran.",
    "c": "She said that {pronoun1} tea was hot.",
    "d": "Tea, nurse. Tea?",
}
DELTA = {"nurse": 0.5, "army": -1.5, "tea": 0.25, "she": 2.0, "self": 9.0}


def filled(
    store: Store,
    deltas_of: Mapping[str, float] = DELTA,
    n_pair: Mapping[str, tuple[int, int] | None] | None = None,
) -> Store:
    """A corpus and pairs; ``n_pair`` holds the counts of words that don't have 10 a side."""
    row = corpus_row(corpus="c", targets="she-he", rule=None, window_tokens=None)
    store.publish("corpus", [row], unit="corpus", run_id="r")
    counts = {w: (n_pair or {}).get(w, (10, 10)) or (None, None) for w in deltas_of}
    deltas = [
        delta(w, d) | {"n_word": 1, "n_pair_f": counts[w][0], "n_pair_m": counts[w][1]}
        for w, d in deltas_of.items()
    ]
    store.publish("word_delta", deltas, unit="a", run_id="r")
    pairs = [pair("b", k, template=t) for k, t in TEMPLATES.items()]
    store.publish("benchmark_pair", pairs, unit="a", run_id="r")
    return store


RARE = {"nurse": (400, 9), "tea": (9, 9)}


def verdicts(store: Store, eta: float) -> dict[str, str]:
    """By pair, what a limit makes of it: as SQL says, and brute force over what was written."""
    text = """
        SELECT pair_id, constraint_verdict(max_pmi_nats, n_words_unknown, $eta) AS verdict
        FROM pair_association
    """
    return {r["pair_id"]: r["verdict"] for r in rows_of(store.root, text, {"eta": eta})}


def test_a_word_counted_too_rarely_is_unknown_and_leaves_its_pair_undecided(store: Store) -> None:
    """nurse has nine co-occurrences on one side, tea on both; told, late, ran and hot have none."""
    filled(store, DELTA | dict.fromkeys(("told", "late", "said", "hot"), 0.1), RARE)
    constrain(store, "c", "b")
    rows = {r["pair_id"]: r for r in store.read("pair_association", corpus="c").to_pylist()}
    words = ("n_words", "n_words_defined", "n_words_unknown")
    assert {k: tuple(r[of] for of in words) for k, r in rows.items()} == {
        "a": (4, 3, 1),
        "b": (1, 0, 1),
        "c": (4, 3, 1),
        "d": (3, 0, 3),
    }
    assert {r["least_count"] for r in rows.values()} == {10}
    assert (rows["a"]["max_pmi_nats"], rows["a"]["max_pmi_word"]) == (-1.5, "army")
    assert rows["d"]["max_pmi_nats"] is rows["d"]["sum_delta_nats"] is None
    # a word that is known leans beyond eta: dropped, whatever the unknown ones are
    assert verdicts(store, 1.4) == dict.fromkeys("ac", "dropped") | dict.fromkeys("bd", "undecided")
    assert verdicts(store, 2.0) == dict.fromkeys("abcd", "undecided")
    constrain(store, "c", "b", least_count=9)
    assert verdicts(store, 2.0) == dict.fromkeys("acd", "kept") | {"b": "undecided"}
    assert verdicts(store, 0.5)["d"] == "kept" and verdicts(store, 0.49)["d"] == "dropped"


def test_undecided_pairs_are_in_no_constrained_subset(store: Store, tmp_path: Path) -> None:
    filled(store, DELTA | {"ran": 0.1}, RARE)
    fill(store, "pair_score", [score("b", pair_id, 0.0) for pair_id in TEMPLATES])
    constrain(store, "c", "b", least_count=1)
    of = "FROM scored_subset([0.5, 9]) WHERE eta_nats = $eta AND is_member"
    members = f"SELECT pair_id {of} ORDER BY pair_id"

    def found(eta: float) -> list[str]:
        return [r["pair_id"] for r in rows_of(store.root, members, {"eta": eta})]

    assert found(0.5) == ["b", "d"] and found(9) == ["b", "d"], "told and hot have no delta"
    constrain(store, "c", "b")
    assert found(0.5) == ["b"] == found(9)
    shared = export(store, "b", tmp_path, constraint=Constraint("c", eta_nats=0.5))
    assert shared.data.num_rows == 1


@given(
    deltas=st.lists(st.tuples(st.floats(-3, 3), st.integers(1, 20)), min_size=1, max_size=6),
    n_absent=st.integers(0, 2),
    eta=st.floats(0, 3),
)
def test_a_kept_pair_has_only_known_words_within_eta(
    deltas: list[tuple[float, int]], n_absent: int, eta: float
) -> None:
    words = [str(i) for i in range(len(deltas) + n_absent)]

    def is_kept(least_count: int) -> bool:
        known = {w: d for w, (d, n) in zip(words, deltas, strict=False) if n >= least_count}
        found = lean(words, known)
        every = found.n_words == found.n_words_defined
        return every and abs(found.max_pmi_nats or 0) <= eta

    expected = not n_absent and all(n >= 10 and abs(d) <= eta for d, n in deltas)
    assert is_kept(10) is expected
    assert is_kept(5) or not expected


def test_scored_pairs_are_measured_next(store: Store, capsys: pytest.CaptureFixture[str]) -> None:
    filled(store)
    constrain_b = ["benchmark", "constrain", "--corpus", "c", "--benchmark", "b"]
    for following in ("score --model ID_OR_PATH --benchmark b", "measure"):
        assert main([*constrain_b, "--warehouse", str(store.root)]) == 0
        assert f"Next: plumbline {following} --warehouse" in capsys.readouterr().out
        fill(store, "pair_score", [score("b", pair_id, 0.0) for pair_id in TEMPLATES])


def test_unknown_names(store: Store) -> None:
    filled(store)
    with pytest.raises(UsageProblem, match="benchmark import none"):
        constrain(store, "c", "none")
    with pytest.raises(UsageProblem, match="only of she/he"):
        constrain(store, "c", "b", "queen/king")
    with pytest.raises(UsageProblem, match="corpus count"):
        constrain(store, "d", "b")


def test_first_of_equals_decides() -> None:
    assert lean(["x", "y"], {"x": -1.0, "y": 1.0}).max_pmi_word == "x"


def test_pairs_of_other_groups_get_their_own_contrast(store: Store) -> None:
    """Each two groups their own; the words of sentences without a template are those they share."""
    filled(store)
    rows = [
        delta(word, value) | {"contrast": f"she/{other}"}
        for other, word, value in (("they", "tea", 0.75), ("xe", "tea", -0.5), ("xe", "old", 9.0))
    ]
    store.publish("word_delta", rows, unit="more", run_id="r")
    template = shared_template("The old cook drank tea.", "The young cook drank tea.")
    pairs = [
        pair("g", name, template=template, group_a="she", group_b=name) for name in ("they", "xe")
    ]
    fill(store, "benchmark_pair", pairs)
    assert constrain(store, "c", "g") == {"she/they": 1, "she/xe": 1}
    found = store.read("pair_association", corpus="c", benchmark="g").to_pylist()
    assert {(r["pair_id"], r["contrast"], r["max_pmi_nats"]) for r in found} == {
        ("they", "she/they", 0.75),
        ("xe", "she/xe", -0.5),  # old is not shared
    }
    fill(store, "benchmark_pair", [pair("h", "1", group_a="more", group_b="less")])
    with pytest.raises(UsageProblem, match="'more/less', only of she/he, she/they, she/xe"):
        constrain(store, "c", "h")
    assert constrain(store, "c", "h", "she/he") == {"she/he": 1}
