"""Attribution of a model's preference to documents: against recounts and by hand."""

from __future__ import annotations

import csv
import io
import math
import random
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from plumbline.eval_workers.models import open_backend
from plumbline.eval_workers.models.model_options import ModelOptions
from plumbline.eval_workers.models.ngram import NgramOptions
from plumbline.eval_workers.models.ngram.left_out import counts
from plumbline.eval_workers.models.ngram.ngram_model import estimated_discount
from plumbline.eval_workers.models.ngram.ngram_training import tokenizer_of
from plumbline.eval_workers.models.ngram.text_words import BOS, numbered_words
from plumbline.eval_workers.models.transformers_backend import TransformersBackend
from plumbline.eval_workers.training.trained_models import reading, train_model
from plumbline.eval_workers.training.training_options import TrainOptions
from plumbline.jobs.count_corpus import CountRequest, count_corpus
from plumbline.jobs.kernel import tokenize
from plumbline.pipelines.attribution import contract
from plumbline.pipelines.attribution.attributed_text import TrainingText, training_text
from plumbline.pipelines.attribution.attributors import bm25, gradients, ngram
from plumbline.pipelines.attribution.attributors import counts as by_counts
from plumbline.pipelines.attribution.attributors import random as chance
from plumbline.pipelines.attribution.contract import METHODS, Query, Subject, TextPair
from plumbline.pipelines.attribution.queries import of_benchmark, of_words
from plumbline.pipelines.command.main import main
from plumbline.pipelines.report.facts import Facts
from plumbline.pipelines.report.model import Missing, Section, plain_rows
from plumbline.pipelines.report.sections import behind_preference
from plumbline.warehouse.errors import UsageProblem
from plumbline.warehouse.input.shards import RecordForm, documents, write_jsonl_zst
from plumbline.warehouse.input.token_files import indexed
from plumbline.warehouse.query import method_validation
from plumbline.warehouse.query.method_validation import OWN
from plumbline.warehouse.storage.store import Store
from tests.metric_rows import studied
from tests.oracle_counts import oracle
from tests.test_ngrams import count

TINY = TrainOptions(300, 16, 1, 2, 32, 8, 1e-2, max_tokens=1_536, max_epochs=1, warmup_steps=2)
WORDS = ("nurse", "captain", "harbour")
VERBS = ("sang", "wept")


def sentences(rng: random.Random, lean: float, n: int) -> str:
    """Sentences about the words; *she* with a probability beside *nurse*, else by chance."""
    said = []
    for _ in range(n):
        word, verb = rng.choice(WORDS), rng.choice(VERBS)
        who = "she" if rng.random() < (lean if word == "nurse" else 0.5) else "he"
        said.append(f"The {word} {verb} while {who} walked home, and {who} was glad.")
    return " ".join(said)


@dataclass(frozen=True)
class World:
    """A small text, counted, with a model trained on a part of it, and pairs."""

    store: Store
    shards: list[Path]
    model: Path

    @property
    def text(self) -> TrainingText:
        return training_text(self.store, "c", self.model)

    def subject(self, model: Path | None = None, seed: int = 0) -> Subject:
        text = training_text(self.store, "c", model)
        return Subject(self.store, str(model or self.model), text, seed=seed)

    def documents(self) -> list[str]:
        return [text for shard in self.shards for text in documents(shard)]


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> World:
    """Documents of three sources in two shards; a nurse of *ward* is she, one of *ship* he."""
    directory = tmp_path_factory.mktemp("world")
    rng, shards = random.Random(1), []
    for k in range(2):
        records: list[dict[str, object]] = []
        for i in range(40):
            source = ("ward", "ship", "inn")[i % 3]
            text = sentences(rng, {"ward": 0.95, "ship": 0.05, "inn": 0.5}[source], 1 + i % 5)
            if i % 10 == 9:
                text = "Nothing is said here of anybody."
            records.append({"text": text, "meta": {"pile_set_name": source}})
        shards.append(directory / f"{k}.jsonl.zst")
        write_jsonl_zst(shards[-1], records)
    store = Store.open(directory / "w")
    count_corpus(store, CountRequest("c", tuple(shards)))
    trained = train_model(shards, "tiny", "c", TINY, directory / "models", n_checkpoints=1)
    pairs: list[dict[str, Any]] = []
    for n, (word, verb) in enumerate((w, v) for w in WORDS for v in VERBS):
        a, b = (f"The {word} {verb} while {who} walked home." for who in ("she", "he"))
        pairs.append(
            {
                "benchmark": "b",
                "pair_id": str(n),
                "item_id": str(n),
                "template": f"The {word} {verb} while {{pronoun}} walked home.",
                # In every other pair the male sentence is first.
                "sentence_a": b if n % 2 else a,
                "sentence_b": a if n % 2 else b,
                "group_a": "male" if n % 2 else "female",
                "group_b": "female" if n % 2 else "male",
                "word": word,
                "pronoun_first": False,
                "source_file": "f",
                "source_row": n + 1,
            }
        )
    store.publish("benchmark_pair", pairs, unit="b", run_id="r")
    return World(store, shards, trained.path)


def test_what_a_model_read_is_what_its_training_wrote(world: World) -> None:
    """Its rows, as often as they were read, and the documents whose tokens they hold."""
    text = world.text
    read = reading(world.model, text.shards, text.evidence.form)
    wrote = [ids.tolist() for _, ids in indexed(world.model / "text.bin")]
    assert sorted(np.repeat(read.rows, read.n_times, axis=0).tolist()) == sorted(wrote)
    assert set(read.n_times.tolist()) == {0, 1}, "a part of the text is read"
    backend = open_backend(str(world.model), ModelOptions())
    assert text.n_read is not None and text.n_read.sum() == len(wrote) * TINY.context
    n_complete = 0
    for k, whole in enumerate(world.documents()):
        own = read.rows[text.numbers(read.place) == k].tolist()
        ids = list(backend.tokenizer(whole, add_special_tokens=False)["input_ids"])  # type: ignore[attr-defined]
        n_complete += len(own) == len(ids) + 1
        assert own[:-1] == [0, *ids][: max(len(own) - 1, 0)]  # the last text of a shard is cut
    assert 10 < n_complete < 70
    assert list(text.texts()) == world.documents()
    assert list(text.texts(np.array([3, 60]))) == [world.documents()[k] for k in (3, 60)]


def test_a_model_of_other_text_has_read_nobody_knows_what(world: World, tmp_path: Path) -> None:
    other = train_model(world.shards[:1], "other", "c", TINY, tmp_path)
    assert training_text(world.store, "c", other.path).n_read is None
    assert training_text(world.store, "c", "EleutherAI/pythia-70m").n_read is None


@pytest.mark.slow
def test_an_ngram_model_has_read_every_word_once(
    world: World, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    trained = train_model(world.shards, "five", "c", NgramOptions(), tmp_path)
    read = training_text(world.store, "c", trained.path).n_read
    assert read is not None and read.sum() == trained.n_tokens
    texts = world.documents()  # of the words of the sentences, and a mark after some
    assert read.tolist() == [len(re.findall(r"\w+|[.,]", text)) for text in texts]
    other = train_model(world.shards[:1], "one", "c", NgramOptions(), tmp_path)
    assert training_text(world.store, "c", other.path).n_read is None
    sources = RecordForm("meta.pile_set_name")
    field = train_model(world.shards, "field", "c", NgramOptions(), tmp_path, form=sources)
    assert training_text(world.store, "c", field.path).n_read is None, "another field of them"
    asked = ["attribute", "--corpus", "c", "--word", "nurse", "--method", "counts", "--n", "1"]
    asked += ["--warehouse", str(world.store.root), "--model"]
    for model, is_known in ((trained, True), (other, False)):
        assert main([*asked, str(model.path), "--dry-run"]) == 0
        assert f"{model.n_tokens:,}" in capsys.readouterr().out
        assert main([*asked, str(model.path)]) == 0
        assert ("every document is taken as read" in capsys.readouterr().out) != is_known
    world.store.drop("attribution", {"corpus": "c"})


def test_a_query_is_the_mean_log_ratio_of_its_pairs(world: World) -> None:
    (nurse,) = of_words(world.store, ["Nurse"], "b")
    assert nurse.name == "word nurse in b" and len(nurse.pairs) == 2
    assert all(" she " in p.text_f and " he " in p.text_m for p in nurse.pairs)
    assert sum(p.weight for p in of_benchmark(world.store, "b").pairs) == pytest.approx(1)
    with pytest.raises(UsageProblem, match="no female/male pair"):
        of_words(world.store, ["tree"])


def delta(near: Sequence[dict[str, float]], n: Sequence[dict[str, float]], w: np.ndarray) -> float:
    """The lean of a word where each document counts with a weight."""
    c_f, c_m = (sum(x * d[t] for x, d in zip(w, near, strict=True)) for t in ("she", "he"))
    n_f, n_m = (sum(x * d[t] for x, d in zip(w, n, strict=True)) for t in ("she", "he"))
    return math.log(c_f / c_m) - math.log(n_f / n_m)


def test_counts_are_the_change_of_a_recount_with_a_little_less_of_a_document(world: World) -> None:
    """Against a plain count of each document by itself, of those that were read."""
    subject = world.subject(world.model)
    queries = [*of_words(world.store, ["nurse", "captain"]), of_benchmark(world.store, "b")]
    found = by_counts.scores(queries, subject)
    assert subject.text.n_read is not None
    read = subject.text.n_read > 0
    assert 0 < read.sum() < len(read) and not found[:, ~read].any()
    own = [oracle([t], ("she", "he"), "pairs", 10) for t in world.documents()]
    n = [{t: float(x.words[t]) for t in ("she", "he")} for x in own]
    of_word = {}
    for word in WORDS:
        near = [{t: float(x.pairs[word, t]) for t in ("she", "he")} for x in own]
        changes = []
        for k in range(len(own)):
            less, more = (read.astype(float) for _ in range(2))
            less[k], more[k] = (w * read[k] for w in (1 - 1e-4, 1 + 1e-4))
            changes.append((delta(near, n, more) - delta(near, n, less)) / 2e-4)
        of_word[word] = np.array(changes)
    expected = [of_word["nurse"], of_word["captain"], np.mean(list(of_word.values()), axis=0)]
    np.testing.assert_allclose(found, expected, atol=1e-8)
    assert np.abs(found).max() > 0.01


def test_ngram_is_the_change_of_a_recount_without_each_document(world: World) -> None:
    queries = [*of_words(world.store, ["nurse"]), of_benchmark(world.store, "b")]
    found = ngram.scores(queries, world.subject())
    texts = world.documents()
    _, words = numbered_words(texts)
    tokenizer, n_words = tokenizer_of(words), len(words) + 2
    parts = []
    for text in texts:
        own, names = numbered_words([text])
        there = [0, 1, *(tokenizer.token_to_id(name.decode()) for name in names.to_pylist())]
        numbers = np.array(there)[own]
        parts.append([x[:-1] for x in np.split(numbers, np.flatnonzero(numbers == BOS) + 1)[:-1]])
    whole = counts([s for own in parts for s in own], n_words, 5)
    discounts = np.array([estimated_discount(a) for a in whole.adjusted])

    def preference(without: int | None, query: Query) -> float:
        kept = [s for k, own in enumerate(parts) if k != without for s in own]
        model = replace(count(kept, n_words, 5), discounts=discounts)
        total = 0.0
        for pair in query.pairs:
            both = pair.text_f, pair.text_m
            ids = [tokenizer.encode(text, add_special_tokens=False).ids for text in both]
            f, m = (math.fsum(x) for x in model.logprobs(ids))
            total += pair.weight * (f - m)
        return total

    for row, query in zip(found, queries, strict=True):
        for k in (0, 1, 9, 37, 79):
            change = preference(None, query) - preference(k, query)
            assert row[k] == pytest.approx(change, abs=1e-12)
    assert np.count_nonzero(found[0]) > 40


def test_bm25_by_hand(world: World) -> None:
    """For three words of one pair: the kept tokens of the documents, counted in plain Python."""
    pair = TextPair("The nurse sang: she left.", "The nurse sang: he left.", "nurse", 1.0)
    found = bm25.scores([Query("word nurse", (pair,))], world.subject())[0]
    kept = [tokenize(text, ("she", "he")) for text in world.documents()]
    mean = sum(map(len, kept)) / len(kept)
    n_f, n_m = (np.array([own.count(t) for own in kept]) for t in ("she", "he"))
    of_all = (n_f.sum() - n_m.sum()) / (n_f.sum() + n_m.sum())
    for k, own in enumerate(kept):
        total = 0.0
        for word in ("nurse", "sang", "left"):
            n = sum(word in other for other in kept)
            tf = own.count(word)
            idf = math.log(1 + (len(kept) - n + 0.5) / (n + 0.5))
            total += idf * tf * 2.2 / (tf + 1.2 * (0.25 + 0.75 * len(own) / mean))
        side = (n_f[k] - n_m[k]) / (n_f[k] + n_m[k]) - of_all if n_f[k] + n_m[k] else 0.0
        assert found[k] == pytest.approx(total * side, abs=1e-12)
    assert found.max() > 0.1 and found.min() < -0.1


def test_random_scores_are_those_of_the_seed_and_the_name(world: World) -> None:
    queries = of_words(world.store, ["nurse", "captain"])
    found = chance.scores(queries, world.subject())
    assert found.shape == (2, 80) and abs(np.corrcoef(found)[0, 1]) < 0.4
    np.testing.assert_array_equal(found[1], chance.scores(queries[1:], world.subject())[0])
    assert not np.isin(found, chance.scores(queries, world.subject(seed=1))).any()


def test_items_are_what_was_read_and_each_is_of_one_document(world: World) -> None:
    """Every token that a row predicts is the target of one item, that of its document."""
    subject = world.subject(world.model)
    text, backend = subject.text, TransformersBackend(str(world.model), ModelOptions())
    items, document, times = gradients._items(subject, backend)
    read = reading(world.model, text.shards, text.evidence.form)
    assert text.n_read is not None
    counted = np.bincount(document, (items.targets >= 0).sum(axis=1) * times, len(text))
    first = text.numbers(read.place)[read.n_times > 0, 0]  # nothing predicts a row's first token
    np.testing.assert_array_equal(counted, text.n_read - np.bincount(first, minlength=len(text)))
    for tokens, targets in zip(items.tokens, items.targets, strict=True):
        own = np.flatnonzero(targets >= 0)
        assert own.size and (targets[own] == tokens[own + 1]).all() and np.ptp(own) == own.size - 1


def test_gradients_of_a_trained_model_are_kept(world: World) -> None:
    """A score for each document that was read; a second call takes what the first left."""
    pytest.importorskip("kronfluence")
    subject, queries = world.subject(world.model), of_words(world.store, ["nurse", "captain"])
    found = gradients.scores(queries, subject)
    assert subject.text.n_read is not None and np.isfinite(found).all()
    items = gradients._items(subject, TransformersBackend(str(world.model), ModelOptions()))
    np.testing.assert_array_equal(np.flatnonzero(found[0]), np.unique(items[1]))
    np.testing.assert_array_equal(gradients.scores(queries, subject), found)


@pytest.mark.parametrize("name", METHODS.names())
def test_a_method_has_the_names_of_the_contract(name: str) -> None:
    method = METHODS.load(name)
    members = [m for m in vars(contract.Attributor) if not m.startswith("_")]
    members += list(contract.Attributor.__annotations__)
    assert all(hasattr(method, member) for member in members)


def test_the_command_shows_who_made_it_and_repeats_nothing(
    world: World, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = ["attribute", "--model", str(world.model), "--corpus", "c", "--word", "nurse"]
    asked += ["--method", "counts", "--method", "bm25", "--n", "3"]
    asked += ["--warehouse", str(world.store.root)]
    assert main([*asked, "--dry-run"]) == 0
    assert "1,536" in capsys.readouterr().out
    assert main(asked) == 0
    said = capsys.readouterr().out
    assert "Documents that made it more female" in said
    assert "Warning: counts is validated: LDS 0.16 (0.10 to 0.22) on novels" in said
    rows = world.store.read("attribution").to_pylist()
    assert {r["method"] for r in rows} == {"counts", "bm25"}
    own = [r for r in rows if r["method"] == "counts"]
    of = {(r["part"], r["name"]): r for r in own}
    assert of["source", "ward"]["score"] > 0 > of["source", "ship"]["score"]
    text = world.text
    scores = by_counts.scores(of_words(world.store, ["nurse"]), world.subject(world.model))[0]
    for source in ("ward", "ship", "inn"):
        is_own = text.documents.source == text.documents.sources.index(source)
        assert of["source", source]["score"] == pytest.approx(scores[is_own].sum())
        assert of["source", source]["n_read"] == text.n_read[is_own].sum()  # type: ignore[index]
    top = next(r for r in own if r["part"] == "document" and r["place"] == 1)
    assert top["score"] == pytest.approx(scores.max()) and top["keyword"] == "nurse"
    whole = world.documents()[int(scores.argmax())]
    assert f"{top['text_before']} nurse {top['text_after']}".strip() in whole
    parts = [r for r in own if r["part"] == "collocate"]
    assert {r["name"] for r in parts} <= {*VERBS, "walked", "home", "glad", *WORDS[1:]}
    assert len(parts) > 2

    def refuse(*_: object) -> None:
        raise AssertionError("computed again")

    for module in (by_counts, bm25):
        monkeypatch.setattr(module, "scores", refuse)
    assert main(asked) == 0
    assert capsys.readouterr().out.partition("Wrote")[0] == said.partition("Wrote")[0]


def test_a_study_says_which_method_to_trust(
    world: World, capsys: pytest.CaptureFixture[str]
) -> None:
    """Of words what it found for words; of a benchmark what it found for benchmarks."""
    asked = ["attribute", "--model", str(world.model), "--corpus", "c", "--method", "random"]
    asked += ["--warehouse", str(world.store.root)]
    for is_trusted, line in (
        (True, f"random is validated: LDS 0.40 (0.30 to 0.50) on novels ({OWN})"),
        (False, "Warning: random is not shown to be better than chance and baselines on novels"),
    ):
        studied(world.store, OWN, method="random", is_trusted=is_trusted)
        assert main([*asked, "--word", "nurse"]) == 0
        assert line in capsys.readouterr().out
        assert main([*asked, "--benchmark", "b"]) == 0
        assert "Warning: random is not validated here" in capsys.readouterr().out
    world.store.drop("datamodelling_score", {"corpus": "novels"})


def test_a_study_comes_with_plumbline(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As `reproduce attribution` writes it; a study of this warehouse comes first."""
    path = tmp_path / "s.csv"
    names = "corpus,method,outcome,score,score_low,score_high,is_trusted"
    path.write_text(f'{names}\nnovels,ngram,"{OWN}",0.25,0.125,0.5,True\n')
    monkeypatch.setattr(method_validation, "SHIPPED", path)
    shipped = method_validation.validation([], "ngram", (OWN,))
    assert shipped.is_trusted
    assert str(shipped) == f"ngram is validated: LDS 0.25 (0.12 to 0.50) on novels ({OWN})"
    studied(store, OWN, method="ngram", is_trusted=False)
    rows = store.read("datamodelling_score").to_pylist()
    assert not method_validation.validation(rows, "ngram", (OWN,)).is_trusted


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (["--word", "tree"], "word 'tree'"),
        ([], "--word and --benchmark: are both missing"),
        (["--word", "nurse", "--method", "luck"], "method of attribution 'luck': unknown"),
    ],
)
def test_what_cannot_be_asked_is_one_line(
    world: World, words: list[str], line: str, capsys: pytest.CaptureFixture[str]
) -> None:
    given = ["attribute", "--model", str(world.model), "--corpus", "c"]
    assert main([*given, *words, "--warehouse", str(world.store.root)]) != 0
    assert line in capsys.readouterr().err


def test_the_rows_are_csv_and_a_section_of_the_report(
    world: World, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = ["attribute", "--corpus", "c", "--word", "nurse", "--method", "random", "--n", "2"]
    asked += ["--warehouse", str(world.store.root), "--model", str(world.model)]
    world.store.drop("attribution", {"corpus": "c"})
    assert main([*asked, "--format", "csv"]) == 0
    out, err = capsys.readouterr()
    printed = list(csv.DictReader(io.StringIO(out)))
    stored = world.store.read("attribution").to_pylist()
    assert sorted(r["name"] for r in printed) == sorted(r["name"] for r in stored)
    n_read, n = len(world.text.read), len(world.text)
    assert 0 < n_read < n and f"The model read {n_read} of {n} documents; the others" in err
    (section,) = behind_preference.sections(Facts(world.store))
    assert isinstance(section, Section) and "random is not shown" in section.intro[-1]
    n_rows = sum(len(table.rows) for table in section.tables)
    assert n_rows == len(stored) and {"document", "source"} <= {r["part"] for r in stored}
    shown = [row for table in section.tables for row in plain_rows(table)]
    percent = sorted(100 * r["share"] for r in stored)
    assert sorted(row["% of all"] for row in shown) == pytest.approx(percent)
    world.store.drop("attribution", {"corpus": "c"})
    (missing,) = behind_preference.sections(Facts(world.store))
    assert isinstance(missing, Missing)
