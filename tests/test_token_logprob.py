"""Where words begin among the tokens whose log-probabilities are kept."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

import pytest

from plumbline.warehouse.query.connection import connect
from plumbline.warehouse.storage.store import Store
from tests.metric_rows import fill, pair, scored_by


def _words(store: Store) -> dict[tuple[str, str], list[tuple[str, int, float]]]:
    """Rows of view ``word_logprob`` by pair and side: word, tokens, log-probability."""
    found = defaultdict[tuple[str, str], list[tuple[str, int, float]]](list)
    query = "FROM word_logprob ORDER BY pair_id, side, position"
    for row in connect(store.root).sql(query).to_arrow_table().to_pylist():
        words = found[row["pair_id"], row["side"]]
        assert row["position"] == len(words)
        words.append((row["word"], row["n_tokens"], row["logprob_nats"]))
    return found


def _placed(store: Store, sentence: str, tokens: Sequence[str]) -> list[tuple[str, int, float]]:
    """The words of a sentence whose tokens have these texts, and log-probabilities -1, -2, -4."""
    fill(store, "model", [scored_by("m")])
    fill(store, "benchmark_pair", [pair("demo", "0", sentence_a=sentence, sentence_b="x")])
    of = {"model_key": "key-m", "benchmark": "demo", "pair_id": "0", "text_id": "t", "run_id": "r"}
    rows = [
        {**of, "side": "a", "position": k, "token_id": k, "token": t, "logprob_nats": -(2.0**k)}
        for k, t in enumerate(tokens)
    ]
    fill(store, "token_logprob", rows)
    return _words(store)["0", "a"]


@pytest.mark.parametrize(
    ("sentence", "tokens", "expected"),
    [
        # a token over two words counts in the first; the second has what begins in it, or no row
        ("As the end", ["As", " the en", "d"], [("As", 1, -1), ("the", 1, -2), ("end", 1, -4)]),
        ("As the end", ["As", " the end"], [("As", 1, -1), ("the", 1, -2)]),
        # white space alone counts with the word behind it, at the end with the last
        ("As  the ", ["As", " ", " the", " "], [("As", 1, -1), ("the", 3, -14)]),
        # halves of a character, and a space before the first word
        ("naïf tea", [" na", "\ufffd", "\ufffd", "f", " tea"], [("naïf", 4, -15), ("tea", 1, -16)]),
        # punctuation apart, in lower case, without accents
        ("Naïf: tea.", [" naif", " :", " te", "##a", " ."], [("Naïf:", 2, -3), ("tea.", 3, -28)]),
        # a word that it doesn't know is no text to place the others by
        ("The zyzzy, tea.", [" the", " <unk>", " ,", " tea", " ."], []),
    ],
)
def test_where_words_begin(
    store: Store, sentence: str, tokens: list[str], expected: list[tuple[str, int, float]]
) -> None:
    assert _placed(store, sentence, tokens) == expected
