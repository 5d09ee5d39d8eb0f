"""`corpus concordance`: counts of words and phrases, alone or near a group, and lines with them."""

import json
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from scipy.stats import t

from plumbline.jobs.evidence.concordance import Sampling, concordance, ratio
from plumbline.pipelines.command.main import main
from plumbline.warehouse.storage.store import Store
from tests.test_why import drawn_texts, in_two_shards

WINDOW = 10
GROUP = {"she", "her", "woman"}
QUERIES = {
    "tea NEAR she her": ("tea", {"she", "her"}),
    "tea NEAR he": ("tea", {"he"}),
    "old  Woman NEAR he tea": ("old woman", {"he", "tea"}),
    "she walked NEAR FEMALE": ("she walked", GROUP),
    "she NEAR she her": ("she", {"she", "her"}),
    "old old NEAR old": ("old old", {"old"}),
    "old woman": ("old woman", set()),
    "old old": ("old old", set()),
    "nurse": ("nurse", set()),
}


def joined(text: str, phrase: str) -> list[str]:
    """The words of a text with a phrase as one of them, from the left."""
    words, parts, at = text.split(), phrase.split(), 0
    found: list[str] = []
    while at < len(words):
        here = words[at : at + len(parts)] == parts
        found.append(phrase if here else words[at])
        at += len(parts) if here else 1
    return found


def n_pair(words: list[str], phrase: str, group: set[str], rule: str) -> int:
    """Pairs of positions, or windows that hold both, one after the other."""
    if rule == "windows":
        starts = range(max(len(words) - WINDOW, 0) + 1)
        held = ([w for w in words[k : k + WINDOW] if w in group | {phrase}] for k in starts)
        least = 1 + (phrase in group)
        return sum(phrase in w and len(w) >= least and not group.isdisjoint(w) for w in held)
    places = range(len(words))
    return sum(
        words[i] == phrase and words[j] in group and (words[j] != phrase or i < j)
        for i in places
        for j in places
        if 0 < abs(i - j) < WINDOW
    )


def brute_force(some: list[str], phrase: str, group: set[str], rule: str) -> dict[str, Any]:
    documents = [joined(text, phrase) for text in some]
    near, alone = [], []
    for words in documents:
        at = [k for k, w in enumerate(words) if w == phrase]
        around = [words[max(k - WINDOW + 1, 0) : k] + words[k + 1 : k + WINDOW] for k in at]
        near.append(sum(not group or any(w in group for w in x) for x in around))
        alone.append(len(at))
    n_kept = [len(text.split()) / 1e6 for text in some]
    found = {"n": sum(near), "n_documents": sum(n > 0 for n in near)}
    found |= dict(zip(("per_million", *_ENDS), by_hand(near, n_kept), strict=True))
    if group:
        found |= {"n_word": sum(alone), "share_near": sum(near) / sum(alone)}
        found["n_pair"] = sum(n_pair(words, phrase, group, rule) for words in documents)
    return found


_ENDS = ("per_million_low", "per_million_high")


def by_hand(n: list[int], of: list[float]) -> Iterator[float]:
    """A rate over documents and the ends of its interval."""
    r, size = sum(n) / sum(of), len(n)
    squares = sum(((a - r * b) / sum(of)) ** 2 for a, b in zip(n, of, strict=True))
    half = t.ppf(0.975, sum(a > 0 for a in n) - 1) * math.sqrt(squares * size / (size - 1)) / r
    yield from (r, r * math.exp(-half), r * math.exp(half))


@pytest.mark.parametrize("rule", ["pairs", "windows"])
def test_counts_are_those_of_brute_force(store: Store, tmp_path: Path, rule: str) -> None:
    some = [text for text in drawn_texts(4) if text]
    in_two_shards(store, "c", some, rule, tmp_path)
    for query, (phrase, group) in QUERIES.items():
        counts = concordance(store, "c", query, Sampling(0))[0]
        expected = brute_force(some, phrase, group, rule)
        assert {name: counts[name] for name in expected} == pytest.approx(expected), query
        assert ("n_pair" in counts) == bool(group)
    pairs = {(r["word"], r["target"]): r["n_pair"] for r in store.read("pair_count").to_pylist()}
    assert concordance(store, "c", "tea NEAR he", Sampling(0))[0]["n_pair"] == pairs["tea", "he"]


def test_what_is_not_known_is_none() -> None:
    assert ratio("x", [0, 0], [5, 5], [0, 1]) == {"x": 0.0, "x_low": None, "x_high": None}
    assert ratio("x", [0, 0], [0, 0], [0, 1]) == {"x": None, "x_low": None, "x_high": None}
    few = ratio("x", [0] * 4, [5] * 4, range(4), is_share=True)
    assert few == {"x": 0.0, "x_low": None, "x_high": None}
    never = ratio("x", [0] * 5, [5] * 5, range(5), is_share=True)
    assert never == {"x": 0.0, "x_low": 0.0, "x_high": pytest.approx(1 - 0.025**0.2)}


def test_lines_show_the_text_as_it_stands(
    store: Store, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    some = ["Then she saw the Old \n woman, and sat.", "he sat. Old tea, woman.", "old woman"]
    in_two_shards(store, "c", [*some, "he drank tea"], "windows", tmp_path)
    found = concordance(store, "c", "old woman", Sampling(5))[1]
    assert {row["keyword"] for row in found} == {"Old woman,", "old woman"}
    (row,) = concordance(store, "c", "old woman NEAR she her", Sampling(5))[1]
    assert (row["text_before"], row["target"]) == ("Then she saw the", "she")
    where = ["--corpus", "c", "--warehouse", str(store.root)]
    assert main(["corpus", "concordance", "tea", "old woman NEAR FEMALE", *where]) == 0
    out = capsys.readouterr().out
    assert "Then she saw the  Old woman,  and sat." in out and "2 drawn" in out
    headings = [one.strip() for one in out.splitlines()[0].split("┃")]
    assert len(set(headings)) == len(headings) == 10, "two columns have one name"
    assert main(["corpus", "concordance", "tea", "--format", "json", *where]) == 0
    (counts,) = json.loads(capsys.readouterr().out)["rows"]
    assert (counts["query"], counts["n"], counts["n_documents"]) == ("tea", 2, 2)
