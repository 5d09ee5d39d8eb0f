"""The sentences of `plumbline why`: drawn equally often, the same however counted, as they are."""

import json
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from scipy import stats

from plumbline.jobs.evidence.concordance import Occurrence, OccurrenceSample, Sampling
from plumbline.jobs.evidence.explanation import explain
from plumbline.jobs.evidence.index import Row, read_index
from plumbline.jobs.ingest.count_corpus import count_corpus
from plumbline.jobs.kernel.corpus_options import CorpusOptions
from plumbline.jobs.kernel.tokens.tokenizer import tokenize
from plumbline.warehouse.storage.store import Store
from tests.kept_words import made, question
from tests.test_why import write

#: A sentence as it is shown, without the shard that it is in.
SHOWN = ("side", "place", "target", "text_before", "keyword", "text_after", "position")


def drawing(texts: Sequence[Sequence[str]]) -> Callable[[int, int], list[Occurrence]]:
    """What draws a sample of ``tea``, given its size and seed."""
    q = question(texts, ["tea"], window=4)
    _, batches = read_index(made(texts, n_shards=2), q, lambda *batch: batch)

    def drawn(n: int, seed: int) -> list[Occurrence]:
        sample = OccurrenceSample(q, Sampling(n, seed))
        for batch in batches:
            sample.offer(*batch)
        return sample.occurrences()

    return drawn


def test_each_occurrence_is_drawn_equally_often() -> None:
    """By chi-square over seeds, near each side; in documents of all lengths, and in copies once."""
    rng = np.random.default_rng(0)
    texts = [
        [word for k in range(n) for word in ("tea", "she" if k % 3 else "he", f"w{d}", "x", "y")]
        for d, n in enumerate(rng.integers(1, 9, 12))
    ]
    texts += [texts[3]] * 7
    size, n_seeds, n = {0: 0, 1: 0}, 400, 4
    for text in texts[:12]:
        for k, word in enumerate(text):
            around = text[max(k - 3, 0) : k + 4]
            size[0] += word == "tea" and "she" in around
            size[1] += word == "tea" and "he" in around
    times, drawn = Counter[tuple[int, int, int]](), drawing(texts)
    for seed in range(n_seeds):
        times.update((p.side, p.text_hash, p.position) for p in drawn(n, seed))
    for side in (0, 1):
        counts = [k for (of, _, _), k in times.items() if of == side]
        assert len(counts) == size[side] and sum(counts) == n * n_seeds
        # Draws without replacement: the variance is smaller than multinomial by this factor.
        spread = 1 - n / size[side]
        chi = sum((c - n * n_seeds / size[side]) ** 2 for c in counts) * size[side]
        p = stats.chi2.sf(chi / (n * n_seeds) / spread, size[side] - 1)
        assert 0.001 < p < 0.999, (side, p)


def essays(rng: np.random.Generator, n: int = 40) -> list[str]:
    names = ["Tea", "tea,", "she", "He", "the", "and", "“rum”", "x-ray", "nurse's", "\n", "of"]
    names += [f"w{k}." for k in range(40)]
    return [f"d{d} " + " ".join(rng.choice(names, 60)) for d in range(n)]


def ask(store: Store, corpus: str, n: int = 5, seed: int = 3) -> list[Row]:
    words = ["tea", "rum", "nurse"]
    return explain(store, corpus, words, sampling=Sampling(n, seed))["word_snippet"]


def shown(rows: Sequence[Row], *names: str) -> list[tuple[object, ...]]:
    return [tuple(row[name] for name in ("word", *(names or SHOWN))) for row in rows]


def test_the_same_sentences_in_any_shards(store: Store, tmp_path: Path) -> None:
    texts = essays(np.random.default_rng(1))
    paths = [write(tmp_path / f"{k}.jsonl", texts[k::5]) for k in range(5)]
    one = write(tmp_path / "all.jsonl", texts)
    count_corpus(store, "one", (one,), CorpusOptions(targets="she-he"))
    count_corpus(store, "five", tuple(reversed(paths)), CorpusOptions(targets="she-he"))
    first = ask(store, "one")
    assert len(first) == 3 * 2 * 5
    assert shown(ask(store, "five")) == shown(first)
    assert shown([r for r in ask(store, "one", n=20) if r["place"] <= 5]) == shown(first)
    assert shown(ask(store, "one", seed=4)) != shown(first)
    assert ask(store, "one", n=0) == []


@pytest.mark.parametrize("kind", ["jsonl", "parquet", "field"])
def test_what_is_shown_is_the_text(kind: str, store: Store, tmp_path: Path) -> None:
    """The word, and the target on its side, within a window; before and after as they stand."""
    texts = essays(np.random.default_rng(2))
    path = tmp_path / f"a.{'jsonl' if kind == 'field' else kind}"
    if kind == "parquet":
        rows: list[str | None] = [text for pair in texts for text in (pair, None)]
        pq.write_table(pa.table({"text": rows}), path, row_group_size=7)
    elif kind == "field":
        path.write_text(
            "".join(json.dumps({"doc": {"body": text}, "text": "no"}) + "\n" for text in texts)
        )
    else:
        write(path, texts)
    field = {"text_field": "doc.body"} if kind == "field" else {}
    count_corpus(store, "c", (path,), CorpusOptions(targets="she-he", **field))
    found = ask(store, "c", n=4)
    assert len(found) == 24 and Counter(row["side"] for row in found)["b"] == 12
    for row in found:
        number = (row["source_row"] + 1) // 2 if kind == "parquet" else row["source_row"]
        text = texts[number - 1]
        kept = tokenize(text, ("she", "he"))
        assert kept[row["position"]] == row["word"]
        assert row["target"] == {"a": "she", "b": "he"}[row["side"]]
        at = [k for k, word in enumerate(kept) if word == row["target"]]
        assert min(abs(k - row["position"]) for k in at) < 10
        assert row["word"] in tokenize(row["keyword"])
        around = " ".join([row["text_before"], row["keyword"], row["text_after"]]).strip()
        assert around in " ".join(text.split())
        assert row["target"] in tokenize(around)
        # The word is at its place: as many kept words stand before it.
        end = " ".join(text.split()).index(around) + len(row["text_before"])
        before = tokenize(" ".join(text.split())[:end], ("she", "he"))
        assert len(before) <= row["position"] < len(before) + len(tokenize(row["keyword"]))


@pytest.mark.parametrize("change", ["gone", "other", "{", '{"text": "\\ud800 tea she"}', "[3]"])
def test_a_shard_that_is_gone_or_has_changed(change: str, store: Store, tmp_path: Path) -> None:
    texts = essays(np.random.default_rng(5), 6)
    path = write(tmp_path / "a.jsonl", texts)
    whole = write(tmp_path / "whole.jsonl", [f"chapter {text}" for text in texts])
    count_corpus(store, "c", (path, whole), CorpusOptions(targets="she-he"))
    good = [row for row in ask(store, "c") if row["shard"] == str(whole)]
    if change == "gone":
        path.unlink()
    elif change == "other":
        write(path, texts[::-1])
    else:
        path.write_text(f"{change}\n" * 6)
    with pytest.warns(UserWarning, match=r"of \d+ sentences are left out: their shards are gone"):
        found = ask(store, "c")
    same = ("side", "target", "text_before", "keyword", "text_after", "position")
    assert good and shown(found, *same) == shown(good, *same)
    for (word, side), n in Counter((row["word"], row["side"]) for row in found).items():
        places = [r["place"] for r in found if (r["word"], r["side"]) == (word, side)]
        assert places == [*range(1, n + 1)]
