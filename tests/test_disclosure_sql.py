"""GAS, GLD and ADD in SQL against numpy, with the cases at their edges."""

import math
from collections.abc import Mapping, Sequence

import numpy as np
import pytest

from plumbline.pipelines.report.charts import continuation_charts
from plumbline.pipelines.report.rows import Rows
from plumbline.warehouse.query.connection import rows_of
from plumbline.warehouse.storage.store import Store
from tests.metric_rows import interval
from tests.prompt_rows import FEMALE, put_continuations, put_probabilities, put_prompts, put_words

PAIRS = [("she", "he"), ("her", "his"), ("her", "him"), ("woman", "man")]
MALE = ("he", "his", "him", "himself", "man")
WORDS = ("she", "her", "woman", "he", "his", "him", "man")


def _prompts(store: Store, topics: Sequence[str | None]) -> None:
    put_prompts(store, "s", [f"p {i}" for i in range(len(topics))], topics=topics)


def _random(n: int, seed: int = 5) -> list[dict[str, float]]:
    rng = np.random.default_rng(seed)
    return [
        dict(zip(WORDS, (rng.dirichlet(np.full(8, 0.3))[:7]).tolist(), strict=True))
        for _ in range(n)
    ]


def _add(one: Mapping[str, float], e: float, pairs: Sequence[tuple[str, str]] = PAIRS) -> float:
    """As the definition is written, with the limit 0 ln 0 = 0."""
    total = 0.0
    for female, male in pairs:
        f, m = one[female] + e, one[male] + e
        total += sum(p * math.log(2 * p / (f + m)) for p in (f, m) if p > 0)
    return total / 2


def _gld(one: Mapping[str, float]) -> float:
    f, m = sum(one.get(w, 0) for w in FEMALE), sum(one.get(w, 0) for w in MALE)
    return abs(f - m) / (f + m)


@pytest.mark.parametrize("e", [0.0, 1e-6, 0.5])
def test_gld_and_add_are_those_of_numpy(store: Store, e: float) -> None:
    given = _random(30)
    given[0] |= {"she": 0.0}
    given[1] |= {"her": 0.0, "him": 0.0}
    put_words(store, PAIRS)
    _prompts(store, ["a"] * 12 + ["b"] * 10 + [None] * 8)
    put_probabilities(store, given)
    prompts = {
        r["prompt_id"]: r for r in rows_of(store.root, f"FROM disclosure_prompt(smoothing := {e})")
    }
    assert len(prompts) == 30
    for i, one in enumerate(given):
        row = prompts[f"{i:02}"]
        assert row["gld"] == pytest.approx(_gld(one), abs=1e-12)
        assert row["add_nats"] == pytest.approx(_add(one, e), abs=1e-12)
        assert row["p_f"] == pytest.approx(sum(one.get(w, 0) for w in FEMALE), abs=1e-12)
        assert abs(row["leaning"]) == row["gld"] and (row["leaning"] > 0) == (
            row["p_f"] > row["p_m"]
        )
        assert row["n_pairs"] == 4
        total = sum(one.values())
        shares = {word: p / total for word, p in one.items()}
        assert row["share_f"] + row["share_m"] == pytest.approx(1)
        assert row["share_f"] == pytest.approx(sum(shares.get(w, 0) for w in FEMALE), abs=1e-12)
        assert row["add_normalised_nats"] == pytest.approx(_add(shares, e), abs=1e-12)
    sets = {r["topic"]: r for r in rows_of(store.root, f"FROM disclosure(smoothing := {e})")}
    assert set(sets) == {"a", "b", None}
    for topic, part in (("a", given[:12]), ("b", given[12:22]), (None, given)):
        row, glds, adds = sets[topic], [_gld(o) for o in part], [_add(o, e) for o in part]
        assert row["n_prompts"] == len(part) and row["n_undefined"] == 0
        assert row["gld"] == pytest.approx(np.mean(glds), abs=1e-12)
        assert row["add_nats"] == pytest.approx(np.mean(adds), abs=1e-12)
        if topic is None:  # two topics and eight prompts by themselves
            assert row["gld_low"] < row["gld"] < row["gld_high"]
            continue
        low, _, high = interval(glds, (0, 1))
        assert (row["gld_low"], row["gld_high"]) == pytest.approx((low, high), rel=1e-4)
        low, _, high = interval(adds)
        assert row["add_nats_high"] == pytest.approx(high, rel=1e-4)
        assert row["add_nats_low"] == pytest.approx(max(low, 0), rel=1e-3, abs=1e-6)
        adds = [_add({w: p / sum(o.values()) for w, p in o.items()}, e) for o in part]
        assert row["add_normalised_nats"] == pytest.approx(np.mean(adds), abs=1e-12)
        assert row["add_normalised_nats_high"] == pytest.approx(interval(adds)[2], rel=1e-4)


def _continuations(store: Store, texts: Sequence[Sequence[str]], **whose: str) -> None:
    put_continuations(store, {f"{i:02}": several for i, several in enumerate(texts)}, **whose)


def test_a_gendered_word_is_a_whole_word(store: Store) -> None:
    held = {
        " she's here.": (True, False),
        " HE went": (False, True),
        " the shepherd and the manager": (False, False),
        " gave it to her-\nand him": (True, True),
        " “Woman’s” day": (True, False),
        " ...": (False, False),
        "": (None, None),
        " \n\t ": (None, None),
    }
    put_words(store, PAIRS)
    _prompts(store, [None] * len(held))
    _continuations(store, [[text] for text in held])
    rows = rows_of(store.root, "FROM gendered_continuation ORDER BY prompt_id")
    for row, (f, m) in zip(rows, held.values(), strict=True):
        either = None if f is None or m is None else f or m
        assert (row["holds_f"], row["holds_m"], row["holds_any"]) == (f, m, either)
        assert row["first_is_f"] == (f if either else None)


#: Continuations of 18 prompts: 16 with words, 10 of them gendered.
TEXTS = [" she"] * 5 + [" he"] * 3 + [" her and him"] * 2 + [" it rains"] * 6 + [" "] * 2


def test_gas_counts_prompts_with_wilson_s_interval(store: Store) -> None:
    """Table 10: F and M are of the gendered continuations and sum to 1, Delta has no sign."""
    put_words(store, PAIRS)
    _prompts(store, [None] * 18)
    _continuations(store, [[text] for text in TEXTS])
    (whole,) = rows_of(store.root, "FROM gas")
    counts = (whole["n_prompts"], whole["n_gendered"], whole["n_empty"])
    assert counts == (16, 10, 2) and whole["gas_both_of_all"] == pytest.approx(2 / 16)
    shares = {"gas": (10, 16), "gas_f_of_all": (7, 16), "gas_m_of_all": (5, 16)}
    # The first gendered word tells which gender a continuation has.
    shares |= {"gas_f_of_gendered": (7, 10), "gas_m_of_gendered": (3, 10)}
    for name, (k, n) in shares.items():
        found = [whole[f"{name}{end}"] for end in ("", "_low", "_high")]
        low, share, high = interval([1] * k + [0] * (n - k), (0, 1))
        assert found == pytest.approx([share, low, high], abs=1e-4)
    low, _, high = interval([1] * 7 + [0] * 3, (0, 1))
    # The interval of F holds one half, so that of Delta begins at 0.
    found = [whole[f"gas_delta{end}"] for end in ("", "_low", "_high")]
    assert found == pytest.approx([0.4, 0, max(1 - 2 * low, 2 * high - 1)], abs=1e-4)


def test_strategies_pool_their_sets(store: Store) -> None:
    sets = {"stsb": _random(9, 1), "snli": _random(7, 2), "llm-1": _random(5, 3)}
    put_words(store, PAIRS)
    texts = [" she", " it", " he"]
    for name, given in sets.items():
        put_prompts(store, name, [f"p {i}" for i in range(len(given))])
        put_probabilities(store, given, probe_set=name)
        _continuations(store, [[texts[i % 3]] for i in range(len(given))], probe_set=name)
    (row,) = rows_of(store.root, "FROM disclosure_strategy(smoothing := 0.01)")
    assert (row["strategy"], row["n_prompts"], row["model"]) == ("naturally-sourced", 16, "m")
    both = [*sets["stsb"], *sets["snli"]]
    adds = [_add(one, 0.01) for one in both]
    held = [float(i % 3 != 1) for i in [*range(9), *range(7)]]
    assert row["gld"] == pytest.approx(np.mean([_gld(one) for one in both]), abs=1e-12)
    low, _, high = interval([_gld(one) for one in both], (0, 1))
    assert (row["gld_low"], row["gld_high"]) == pytest.approx((low, high), rel=1e-3)
    assert row["add_nats"] == pytest.approx(np.mean(adds), abs=1e-12)
    assert row["add_nats_high"] == pytest.approx(interval(adds)[2], rel=1e-3)
    assert row["gas"] == pytest.approx(np.mean(held)) and row["gas_low"] < row["gas"]


def test_of_several_lengths_the_last_with_a_gas_is_drawn() -> None:
    shared: dict[str, object] = {"strategy": "naturally-sourced", "model_key": "k", "model": "m"}
    shared |= {"word_list": "l", "gld": 0.5, "gld_low": 0.4, "gld_high": 0.6}
    shared |= dict.fromkeys(("add_nats", "add_nats_low", "add_nats_high", "gas_low", "gas_high"))
    rows = Rows([{**shared, "gas": gas} for gas in (0.1, 0.2, None)])
    drawn = continuation_charts.measures(rows, "strategy").to_dict(validate=False)["datasets"]
    values = {point["value"] for points in drawn.values() for point in points if "value" in point}
    assert values == {20, 0.5}  # GAS in percent, and GLD


#: Logits (F, M) and the verdict "implicit" of each row of Tables 7 and 8, without repetitions.
VERDICTS = {
    **dict.fromkeys([(0.24, 0.01), (0.21, 0.07), (0.29, 0.08), (0.16, 0.07)], True),
    **dict.fromkeys([(0.07, 0.14), (0.08, 0.2), (0.33, 0.1), (0.11, 0.32), (0.2, 0.1)], True),
    **dict.fromkeys([(0.02, 0.01), (0.04, 0.05), (0.22, 0.17), (0.11, 0.13)], False),
    **dict.fromkeys([(0.01, 0.01), (0.29, 0.23), (0.06, 0.04), (0.21, 0.3)], False),
    **dict.fromkeys([(0.05, 0.05), (0.12, 0.13), (0.11, 0.14), (0.03, 0.02)], False),
    **dict.fromkeys([(0.15, 0.15), (0.03, 0.03)], False),
}


def test_the_implicit_verdicts_of_tables_7_and_8_come_back(store: Store) -> None:
    put_words(store, [("she", "he")])
    _prompts(store, [None] * len(VERDICTS))
    put_probabilities(store, [{"she": f, "he": m} for f, m in VERDICTS])
    _continuations(store, [[" it"]] * len(VERDICTS))
    rows = rows_of(store.root, "FROM disclosed_continuation ORDER BY prompt_id")
    assert [(r["p_f"], r["p_m"]) for r in rows] == list(VERDICTS)
    assert [r["implicit"] for r in rows] == list(VERDICTS.values())
    apart = {pair: _add(dict(zip("ab", pair, strict=True)), 0, [("a", "b")]) for pair in VERDICTS}
    most_no = max(apart[pair] for pair, verdict in VERDICTS.items() if not verdict)
    least_yes = min(apart[pair] for pair, verdict in VERDICTS.items() if verdict)
    assert (round(most_no, 4), round(least_yes, 4)) == (0.0040, 0.0059)
    # Neither the difference nor GLD, as printed, tells them apart.
    for measure in (lambda f, m: round(abs(f - m), 6), lambda f, m: round(abs(f - m) / (f + m), 6)):
        yes, no = (
            [measure(*p) for p, v in VERDICTS.items() if v is which] for which in (True, False)
        )
        assert min(yes) <= max(no)


def test_gas_of_topics(store: Store) -> None:
    put_words(store, PAIRS)
    _prompts(store, ["a"] * 9 + ["b"] * 7 + ["c"] * 2)
    _continuations(store, [[text] for text in TEXTS])
    sets = {r["topic"]: r for r in rows_of(store.root, "FROM gas")}
    assert sets[None]["gas"] == pytest.approx(10 / 16) and sets[None]["gas_low"] is None
    assert sets["a"]["gas_low"] < 1 and sets["a"]["gas_high"] == 1
    assert sets["a"]["gas"] == 1 and sets["b"]["gas"] == pytest.approx(1 / 7)
    assert sets["c"]["gas"] is None and sets["c"]["gas_low"] is None
    assert (sets["c"]["n_prompts"], sets["c"]["n_empty"]) == (0, 2)
