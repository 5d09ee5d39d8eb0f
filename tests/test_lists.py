"""Word lists compared and brought along: coverage, tau, files of the user."""

import csv
import itertools
import math
from pathlib import Path

import numpy as np
import pytest

from plumbline.jobs.association.associations import associate
from plumbline.jobs.ingest.count_corpus import count_corpus
from plumbline.jobs.kernel.corpus_options import CorpusOptions
from plumbline.jobs.kernel.tokens.tokenizer import Targets
from plumbline.pipelines.reproduce.word_lists import agreement, compare_list, printed
from plumbline.warehouse import wordlists
from plumbline.warehouse.errors import BadInput
from plumbline.warehouse.storage.store import Store
from tests.oracle_counts import oracle
from tests.test_why import write


def tau_by_hand(x: list[float], y: list[float]) -> float:
    """Concordant minus discordant over the geometric mean of the untied pairs: O(n^2)."""
    signs = [
        (np.sign(p[0] - q[0]), np.sign(p[1] - q[1]))
        for p, q in itertools.combinations(list(zip(x, y, strict=True)), 2)
    ]
    untied = sum(s != 0 for s, _ in signs) * sum(t != 0 for _, t in signs)
    return float(sum(s * t for s, t in signs) / math.sqrt(untied)) if untied else math.nan


def texts_of(n: int, seed: int) -> list[str]:
    """Documents of made-up words, each near some of four pronouns; a document has few words."""
    draw = np.random.default_rng(seed)
    words = [f"{a}{b}x" for a in "bcdfghjk" for b in "aeiouyw"]
    texts = []
    for _ in range(n):
        some = draw.choice(words, 12)
        said = draw.choice(["she", "he", "her", "him"], 40, p=draw.dirichlet([2, 2, 2, 2]))
        texts.append(" ".join(str(x) for x in draw.permutation([*said, *draw.choice(some, 60)])))
    return texts


LIST = """
description = "pronouns"
source = "made up for this test"
groups = ["female", "male"]
pairs = [{ a = "she", b = "he" }, { a = "her", b = "him" }]
"""
CONTRASTS = (("she", "he"), ("her", "him"))


def counted(store: Store, where: Path, texts: list[str]) -> None:
    (where / "fours.toml").write_text(LIST, encoding="utf-8")
    write(where / "a.jsonl", texts)
    options = CorpusOptions(targets=str(where / "fours.toml"))
    count_corpus(store, "c", [where / "a.jsonl"], options)
    associate(store, "c")


def odds(texts: list[str]) -> list[dict[str, float]]:
    """A word's count beside the female word over that beside the male one, for each contrast."""
    targets = [word for side in CONTRASTS for word in side]
    pairs = oracle(texts, targets, "pairs", 10).pairs
    words = {word for word, _ in pairs}
    return [
        {w: pairs[w, f] / pairs[w, m] for w in words if pairs[w, f] and pairs[w, m]}
        for f, m in CONTRASTS
    ]


def test_tau_is_that_of_counts_by_hand(store: Store, tmp_path: Path) -> None:
    texts = texts_of(40, seed=3)
    counted(store, tmp_path, texts)
    (*_, row), said = compare_list(store, "c", "fours")
    a, b = odds(texts)
    common = sorted(set(a) & set(b))
    assert row["n_words"] == len(common) >= 50
    # Equal quotients of counts are ties, whatever their rounding.
    exact = tau_by_hand([round(a[w], 12) for w in common], [round(b[w], 12) for w in common])
    assert row["tau_b"] == pytest.approx(exact, abs=1e-12)
    assert said[-1].endswith(f": {exact:.2f} to {exact:.2f}")


def test_without_two_words_or_two_values_there_is_no_tau() -> None:
    nan = math.nan
    deltas = {"a": [1, 2, 3, nan], "b": [nan, nan, 4, 5], "c": [7, 7, nan, nan], "d": [nan] * 4}
    rows = agreement({name: np.array(x) for name, x in deltas.items()})
    shared = {(row["contrast_a"], row["contrast_b"]): row["n_words"] for row in rows}
    assert shared == {
        **dict.fromkeys(itertools.combinations("abcd", 2), 0),
        **{("a", "b"): 1, ("a", "c"): 2},
    }
    assert {row["tau_b"] for row in rows} == {None}


@pytest.mark.reference
def test_the_printed_figures_of_pairs_are_the_papers(data: Path) -> None:
    path = data.parent / "reference" / "unstereoeval_gender_pairs.csv"
    with path.open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    expected = {
        f"{r['female']}/{r['male']}": (
            int(r["well_defined_words"]),
            float(r["percent_of_vocabulary"]),
        )
        for r in rows
    }
    assert printed() == expected
    assert set(expected) == {p.contrast for p in wordlists.load("gendered").pairs}
    # All percentages are of one vocabulary, within their rounding.
    ends = [(100 * n / (p + 0.005), 100 * n / (p - 0.005)) for n, p in expected.values() if n]
    assert max(low for low, _ in ends) < 120_339 < min(high for _, high in ends)


@pytest.mark.parametrize("name", wordlists.LISTS.names())
def test_every_built_in_list_can_be_counted(name: str) -> None:
    Targets(wordlists.load(name).targets).checked()


def test_groups_have_names_that_the_warehouse_keeps(tmp_path: Path) -> None:
    path = tmp_path / "age.toml"
    two = "description = 'd'\nsource = 's'\npairs = [{ a = 'old', b = 'young' }, "
    two += "{ a = 'aged', b = 'youthful' }]\n"
    path.write_text(two, encoding="utf-8")
    with pytest.raises(BadInput, match="groups is missing: name both sides"):
        wordlists.load(str(path))
    path.write_text(two + "groups = ['old people', 'young people']\n", encoding="utf-8")
    found = wordlists.load(str(path))
    again = wordlists.from_rows(found.rows("c"))
    assert again.pairs == found.pairs and again.groups == ("old people", "young people")
    assert wordlists.side_names("age", [again]) == ("old people words", "young people words")
