"""Scoring functions that are sequence classifiers, against plain transformers and plain loops."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from dataclasses import asdict
from itertools import combinations, product
from pathlib import Path
from statistics import fmean
from typing import Any

import pytest
import torch
import transformers
from transformers import PreTrainedTokenizerFast

from plumbline.contracts import check_scoring_function
from plumbline.eval_workers.fairpair import classifiers, fairpair_steps, phi
from plumbline.eval_workers.fairpair.fairpair_spec import FairPairSpec
from plumbline.eval_workers.fairpair.figures.text_groups import read_groups
from plumbline.eval_workers.models.kinds.classifier import Classified, Classifier
from plumbline.eval_workers.models.model_options import ModelOptions
from plumbline.warehouse.errors import BadInput, UsageProblem
from plumbline.warehouse.query.connection import connect
from plumbline.warehouse.storage.store import Store
from tests.fairpair_rows import sampled_set
from tests.tiny_models import KINDS, SENTENCES, save

MOODS = {0: "negative", 1: "neutral", 2: "positive"}
FILE = """
description = "difference of mood"
model = "mood"
[weights]
positive = 1
negative = -0.5
"""
SPEC = FairPairSpec(model="m", n_permutations=19, n_resamples=19, device="cpu")


def save_classifier(directory: Path, labels: dict[int, str], **more: Any) -> Path:
    """A small random BERT that reads 48 tokens, [BOS] in front of each text."""
    shape: dict[str, Any] = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2}
    tokenizer = KINDS["gpt2-wordpiece"].tokenizer()
    tokenizer.post_processor = None
    config = transformers.BertConfig(
        vocab_size=tokenizer.get_vocab_size(),
        **shape,
        intermediate_size=32,
        max_position_embeddings=48,
        initializer_range=0.4,
        id2label=labels,
        label2id={name: i for i, name in labels.items()},
        **more,
    )
    torch.manual_seed(3)
    transformers.BertForSequenceClassification(config).save_pretrained(directory)
    special = {"unk_token": "[UNK]", "pad_token": "[BOS]"}
    PreTrainedTokenizerFast(tokenizer_object=tokenizer, **special).save_pretrained(directory)
    return directory


def by_transformers(directory: Path, texts: Sequence[str]) -> list[dict[str, float]]:
    """Label -> probability of each text, by the library's own pipeline, one text at a time."""
    pipeline = transformers.pipeline(
        "text-classification", model=str(directory), device="cpu", dtype=torch.float32
    )
    said = [pipeline(text, top_k=None, truncation=True, max_length=48) for text in texts]
    return [{one["label"]: one["score"] for one in labels} for labels in said]


@pytest.fixture(scope="module")
def mood(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_classifier(tmp_path_factory.mktemp("models") / "mood", MOODS)


@pytest.fixture
def here(mood: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory with the classifier and its file, as the working directory."""
    monkeypatch.chdir(tmp_path)
    shutil.copytree(mood, "mood")
    Path("feeling.toml").write_text(FILE)
    return tmp_path


@pytest.fixture
def classified(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Every text that reaches a classifier from now on."""
    seen: list[str] = []
    classify = Classifier.classify

    def watched(self: Classifier, texts: Sequence[str]) -> list[Classified]:
        seen.extend(texts)
        return classify(self, texts)

    monkeypatch.setattr(Classifier, "classify", watched)
    return seen


@pytest.mark.parametrize(
    ("labels", "more"),
    [
        (MOODS, {}),
        (MOODS, {"problem_type": "multi_label_classification"}),
        ({0: "toxic"}, {}),
    ],
)
def test_probabilities_are_those_of_transformers(
    tmp_path: Path, labels: dict[int, str], more: dict[str, Any]
) -> None:
    """Batches of equal lengths, a text twice, and one that is longer than the model reads."""
    directory = save_classifier(tmp_path / "m", labels, **more)
    texts = [*SENTENCES, SENTENCES[0], " ".join(SENTENCES[:8])]
    model = Classifier(str(directory), ModelOptions(batch_tokens=40, device="cpu"))
    found = model.classify(texts)
    for one, expected in zip(found, by_transformers(directory, texts), strict=True):
        got = dict(zip(model.labels, one.probabilities, strict=True))
        assert got == pytest.approx(expected, abs=1e-6)
    assert [one.is_cut for one in found] == [*[False] * 13, True] and found[-1].n_tokens > 48
    assert len({one.probabilities for one in found}) > 8
    (alone,) = model.classify(texts[2:3])
    assert alone.n_tokens == found[2].n_tokens
    assert alone.probabilities == pytest.approx(found[2].probabilities, abs=1e-6)


def test_a_decoder_without_padding(tmp_path: Path) -> None:
    directory = save("gpt2", tmp_path / "gpt2")
    config = transformers.GPT2Config.from_pretrained(directory, num_labels=2)
    torch.manual_seed(0)
    transformers.GPT2ForSequenceClassification(config).save_pretrained(directory)
    model = Classifier(str(directory), ModelOptions(device="cpu"))
    texts = [SENTENCES[2], SENTENCES[3], SENTENCES[0]]
    for one, expected in zip(model.classify(texts), by_transformers(directory, texts), strict=True):
        assert dict(zip(model.labels, one.probabilities, strict=True)) == pytest.approx(expected)


def test_figures_are_those_of_plain_loops_and_no_text_is_classified_twice(
    here: Path, store: Store, classified: list[str]
) -> None:
    sampled = sampled_set(store, n_prompts=2, n_samples=6)
    fairpair_steps.score(store, sampled, "feeling.toml", SPEC, "run")
    texts = {text for group in read_groups(store, sampled) for text in group.pg + group.gp}
    assert sorted(classified) == sorted(texts)  # each once, although sides share texts
    fairpair_steps.score(store, sampled, "feeling.toml", SPEC, "again")
    fairpair_steps.converge(store, sampled, "./feeling.toml", SPEC, "again")
    fairpair_steps.calibrate(store, sampled, "feeling.toml", SPEC, "again")
    assert len(classified) == len(texts)

    ordered = sorted(texts)
    said = dict(zip(ordered, by_transformers(Path("mood"), ordered), strict=True))
    numbers = {t: p["positive"] - 0.5 * p["negative"] for t, p in said.items()}
    rows = {
        (r["side"], r["prompt_id"]): r
        for r in store.read("fairpair_prompt", **asdict(sampled), phi="feeling").to_pylist()
    }
    assert len(rows) == 4
    for group in read_groups(store, sampled):
        pg, gp = ([numbers[text] for text in texts] for texts in (group.pg, group.gp))
        row = rows[group.side, group.prompt_id]
        b = fmean(abs(x - y) for x, y in product(pg, gp))
        v_pg, v_gp = (fmean(abs(x - y) for x, y in combinations(v, 2)) for v in (pg, gp))
        assert row["bias_b"] == pytest.approx(b, abs=1e-6)
        assert row["variability_pg"] == pytest.approx(v_pg, abs=1e-6)
        assert row["fairpair_f"] == pytest.approx(b * b / (v_pg * v_gp), rel=1e-3)
    kept = connect(store.root).execute(
        "SELECT count(*), count(DISTINCT text_id), max(classifier) FROM text_label AS t "
        "JOIN (SELECT DISTINCT text FROM compared_text WHERE is_perturbed) "
        "ON t.text_id = sha256(text)"
    )
    n_valid = len({text for group in read_groups(store, sampled) for text in group.pg})
    assert kept.fetchone() == (3 * n_valid, n_valid, "mood")


def test_a_stopped_run_classifies_the_rest(
    here: Path, store: Store, classified: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(classifiers, "CHUNK", 5)
    texts = [f"{sentence} {k}" for k, sentence in enumerate(SENTENCES)]
    ready = classifiers.load("feeling.toml").opened(ModelOptions(device="cpu"), store, "run")
    publish = Store.publish

    def stop(self: Store, *rows: Any, **how: Any) -> None:
        if len(classified) > 5:
            raise KeyboardInterrupt
        publish(self, *rows, **how)

    monkeypatch.setattr(Store, "publish", stop)
    with pytest.raises(KeyboardInterrupt):
        ready.items(texts)
    monkeypatch.setattr(Store, "publish", publish)
    again = classifiers.load("feeling.toml").opened(ModelOptions(device="cpu"), store, "run")
    found = again.items(texts)
    assert classified == [*texts[:10], *texts[5:]]
    assert found == pytest.approx(classifiers.load("feeling.toml").items(texts), abs=1e-6)
    # Other weights read the same rows.
    Path("sad.toml").write_text(FILE.replace("-0.5", "1").replace("positive = 1", "positive = 0"))
    n = len(classified)
    sad = classifiers.load("sad.toml").opened(ModelOptions(device="cpu"), store, "run")
    assert all(0 <= number <= 1 for number in sad.items(texts)) and len(classified) == n


def test_it_keeps_the_contract_of_scoring_functions(here: Path) -> None:
    distances = check_scoring_function("feeling.toml", SENTENCES)
    assert distances.max() > 0.01


def test_the_shipped_ones_name_their_labels() -> None:
    toxicity, regard = phi.find("toxicity"), phi.find("regard")
    assert toxicity.LANGUAGES == regard.LANGUAGES == ("en",)
    assert isinstance(regard, classifiers.ClassifierPhi)
    assert {k for k, weight in regard.weights.items() if weight} == {"positive", "negative"}
    assert fairpair_steps.scoring_functions(FairPairSpec(phi=("regard",)), [{"language": "en"}])
    with pytest.raises(UsageProblem, match="knows en, the prompts are in de"):
        fairpair_steps.scoring_functions(FairPairSpec(phi=("toxicity",)), [{"language": "de"}])


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("positive = 1", 'positive = "1"', "weights.positive does not fit (expected a number"),
        ("positive = 1\nnegative = -0.5", "", "weights needs a label that counts"),
        ("model =", "modle =", "unknown key modle"),
        ("positive", "posittive", "has no label posittive (it has negative, neutral, positive)"),
        ('"mood"', '"tiny"', "GPT2LMHeadModel is not a classifier"),
        ('"mood"', '"./nowhere"', "does not exist"),
    ],
)
def test_a_bad_file_or_model_is_one_line(here: Path, old: str, new: str, said: str) -> None:
    save("gpt2", Path("tiny"))
    assert old in FILE
    Path("feeling.toml").write_text(FILE.replace(old, new))
    with pytest.raises(BadInput) as caught:
        fairpair_steps.check_classifiers(["feeling.toml"])
    assert said in str(caught.value) and "\n" not in str(caught.value)


def test_names_that_would_mix_figures_are_refused(here: Path) -> None:
    Path("regard.toml").write_text(FILE)
    with pytest.raises(UsageProblem, match="has the name of ours, regard"):
        phi.find("regard.toml")
    Path("other").mkdir()
    Path("other/feeling.toml").write_text(FILE)
    spec = FairPairSpec(phi=("feeling.toml", "other/feeling.toml"))
    with pytest.raises(UsageProblem, match="names feeling twice"):
        fairpair_steps.scoring_functions(spec, [{"language": "en"}])
    with pytest.raises(UsageProblem, match="no such file"):
        phi.find("none.toml")


def test_a_pickle_that_runs_code_is_refused(here: Path, tmp_path: Path) -> None:
    class Evil:
        def __reduce__(self) -> tuple[Any, ...]:
            return (Path.touch, (tmp_path / "ran",))

    Path("mood/model.safetensors").unlink()
    torch.save({"classifier.weight": Evil()}, "mood/pytorch_model.bin")
    with pytest.raises(BadInput, match="can't be loaded"):
        classifiers.load("feeling.toml").items(["She drank tea."])
    assert not (tmp_path / "ran").exists()
