"""FairPair where the truth is known: a model of a world with planted leans."""

import re
from itertools import product
from typing import Any

import pytest

from plumbline.eval_workers.fairpair.fairpair_options import CLOSED_WORLD, FigureOptions
from plumbline.eval_workers.fairpair.fairpair_set import measure_set
from plumbline.eval_workers.fairpair.perturbed_set import PerturbedSamples, perturb_set
from plumbline.eval_workers.fairpair.perturbers import RulePerturber
from plumbline.eval_workers.fairpair.probe_prompts import CLOSED_WORLD_SET, closed_world_rows
from plumbline.eval_workers.fairpair.significance import fairpair_f
from plumbline.eval_workers.pairs.closed_world_texts import WorldOptions, write_world
from plumbline.eval_workers.pairs.closed_world_words import grammar, lexicon, planted_words
from plumbline.eval_workers.pairs.pronouns.pronoun_templates import PRONOUNS
from plumbline.eval_workers.training.trained_models import train_model
from plumbline.eval_workers.training.training_options import preset
from plumbline.warehouse.storage.store import Store
from tests.metric_rows import fill

N_WORDS = 1_600_000
PROMPTS: list[dict[str, Any]] = closed_world_rows()
#: Verbs that end an opening about a person: the grammar's phrase `did`.
DID = ("arrived", "smiled", "spoke", "left", "was home")


def slot_of(row: dict[str, Any]) -> str:
    return str(row["prompt_id"]).split("-")[1]


def perfect_means(slot: str) -> tuple[float, float, float]:
    """B, V_pg and V_gp of a model that draws words with their planted probability, by hand."""
    words = [word for word in planted_words(0) if word.word_class == slot]

    def nucleus(shares: dict[str, float]) -> dict[str, float]:
        kept: dict[str, float] = {}
        for word in sorted(shares, key=lambda w: -shares[w]):
            if sum(kept.values()) < 0.9:
                kept[word] = shares[word]
        return {word: p / sum(kept.values()) for word, p in kept.items()}

    he, she = nucleus({w.word: w.p_he for w in words}), nucleus({w.word: w.p_she for w in words})
    return tuple(  # type: ignore[return-value]
        sum(p * q for (a, p), (b, q) in product(one.items(), two.items()) if a != b)
        for one, two in ((he, she), (he, he), (she, she))
    )


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> Store:
    """FairPair of a model that was trained as the pipeline trains it, both scoring functions."""
    directory = tmp_path_factory.mktemp("world")
    shards = write_world(WorldOptions(n_tokens=N_WORDS, world="straight"), directory)[0]
    # More than the preset's: a model of 1.6 M tokens leans a little on control words, too.
    options = preset("closed", 0, 2_600_000)
    trained, _ = train_model(shards, "straight", "straight", options, directory / "models")
    return measure(Store.open(directory / "w"), trained["path"])


def measure(store: Store, model: str) -> Store:
    from plumbline.eval_workers.models.model_options import ModelOptions
    from plumbline.eval_workers.models.sampling_contract import SamplingOptions
    from tests.steps import sample_set

    fill(store, "probe_prompt", [{**row, "run_id": "r"} for row in PROMPTS])
    how = SamplingOptions(max_new_tokens=CLOSED_WORLD.max_new_tokens)
    drawn = sample_set(store, CLOSED_WORLD_SET, model, ModelOptions(), how, 100)
    perturber = RulePerturber()
    keys = CLOSED_WORLD_SET, drawn.model_key, drawn.partition["sampling_key"]
    perturb_set(store, *keys, perturber, "r")
    whose = PerturbedSamples(*keys, perturber.name)
    options = FigureOptions(n_permutations=199, n_resamples=300)
    for phi in ("jaccard", "vader"):
        measure_set(store, whose, phi, options, "r")
    return store


def figures(store: Store, phi: str, topic: str) -> dict[str, Any]:
    rows = store.read("fairpair_set").to_pylist()
    wanted = ("original", phi, f"topic = {topic}")
    (row,) = [row for row in rows if (row["side"], row["phi"], row["subset"]) == wanted]
    return row


@pytest.mark.slow
def test_the_model_writes_words_of_the_slot_and_every_text_is_valid(measured: Store) -> None:
    words = {name: set(found) for name, found in lexicon().items()}
    words["did"] = {did.split()[0] for did in DID}
    rows = measured.read("continuation").to_pylist()
    right = [r["continuation"].strip() in words[slot_of(r)] for r in rows]
    # Trained weights differ by how a CPU multiplies: bfloat16 gave 0.9685, float32 above 0.97.
    assert len(rows) == 30 * 2 * 100 and sum(right) > 0.96 * len(rows)
    valid = measured.read("perturbed_continuation")["is_valid"].to_pylist()
    assert sum(valid) >= len(valid) - 5


@pytest.mark.slow
def test_planted_leans_are_found(measured: Store) -> None:
    """F is that of the grammar, 1.027, or less: what the model has not learned shows no bias."""
    found = figures(measured, "jaccard", "planted")
    assert (
        found["fairpair_f_low"] > 1.002 and found["p_permutation"] <= 0.01 and found["p_t"] < 0.001
    )
    means = [perfect_means(slot_of(p)) for p in PROMPTS if p["topic"] == "planted"]
    sums = [sum(column) for column in zip(*means, strict=True)]
    perfect = fairpair_f(*sums)
    assert perfect == pytest.approx(1.027, abs=0.001)
    assert 1.005 < found["fairpair_f"] < perfect
    assert found["bias_b"] == pytest.approx(sums[0] / len(means), rel=0.02)


@pytest.mark.slow
@pytest.mark.parametrize("phi", ["jaccard", "vader"])
def test_nothing_is_found_where_nothing_was_planted(measured: Store, phi: str) -> None:
    """An interval misses 1 once in twenty, so near it counts, and no finding of the test's."""
    found, near = figures(measured, phi, "control"), 0.005 if phi == "jaccard" else 0.02
    assert found["fairpair_f_low"] < 1 + near and found["fairpair_f_high"] > 1 - near
    assert abs(found["fairpair_f"] - 1) < 3 * near
    assert found["p_permutation"] > 0.005, "the smallest that 199 exchanges can give"


def fits(frame: str, text: str) -> bool:
    """Whether a text is a frame about him whose slots hold words of their class."""
    parts, given = frame.split(), text.split()
    return len(parts) == len(given) and all(
        word == part or in_slot(part, word) for part, word in zip(parts, given, strict=True)
    )


def in_slot(part: str, given: str) -> bool:
    slot = re.fullmatch(r"\{(\w+)\}([.,]?)", part)
    words = PRONOUNS["m"].get(f"{{{slot[1]}}}", "").split() if slot else ()
    return bool(slot) and given.lower() in {
        w + slot[2] for w in (*words, *lexicon().get(slot[1], ()))
    }


OPENINGS = [frame for shape in grammar().openings for frame in shape]
FOLLOWUPS = [frame for shape in grammar().followups for frame in shape]


def test_only_a_word_of_its_slot_or_one_of_five_verbs_can_follow_a_prompt() -> None:
    assert {slot_of(p) for p in PROMPTS if p["topic"] == "planted"} == set(lexicon())
    for prompt in PROMPTS:
        last = prompt["prompt"].split(". ")[2]
        if prompt["topic"] == "control":
            for did in DID:
                assert any(fits(frame, f"{last} {did}.") for frame in OPENINGS), prompt
            continue
        following = {
            frame[end.end() :].split()[0].strip(".,")
            for frame in FOLLOWUPS
            for end in re.finditer(r" ", frame)
            if fits(frame[: end.start()], last)
        }
        assert following == {f"{{{slot_of(prompt)}}}"}, prompt
