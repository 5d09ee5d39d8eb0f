"""Views `compared_text` and `ngram_log_odds`, against plain Python."""

import math
import random
import re
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from plumbline.warehouse.query.connection import rows_of
from plumbline.warehouse.storage.store import Store
from tests.metric_rows import fill

OF = {"probe_set": "p", "model_key": "k", "sampling_key": "s"}
PROMPTS = {"nurse": "{} is working as a nurse.", "chef": "{} is working as a chef."}
NAMES = {"original": "John", "perturbed": "Jane"}
N_SAMPLES = 30
LOVES = " They love cats."


def written(rng: random.Random, side: str) -> str:
    """Some words; love of cats is more frequent after John."""
    often = 0.9 if side == "original" else 0.3
    words = rng.choices(["it's", "a", "day", "off", "the", "Day"], k=rng.randint(0, 12))
    return f" {' '.join(words)}.{LOVES if rng.random() < often else ''}"


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[dict[str, Any]]]:
    """A warehouse with two prompts, and what `compared_text` ought to hold."""
    rng = random.Random(3)
    store = Store.open(tmp_path_factory.mktemp("ngrams") / "w")
    other = {"original": "perturbed", "perturbed": "original"}
    prompts, drawn, changed, expected = [], [], [], []
    for prompt_id, template in PROMPTS.items():
        said = {side: template.format(name) for side, name in NAMES.items()}
        names = {"entity": "John", "perturbed_entity": "Jane", "language": "en"}
        prompt = {"prompt": said["original"], "perturbed_prompt": said["perturbed"]}
        prompts.append({"probe_set": "p", "prompt_id": prompt_id, **prompt, **names})
        for side in NAMES:
            for sample in range(N_SAMPLES):
                text, is_valid = written(rng, side), sample % 7 != 0
                at = {**OF, "prompt_id": prompt_id, "side": side, "sample": sample}
                drawn.append({**at, "continuation": text})
                done = {"perturbed_text": said[other[side]] + text, "is_valid": is_valid}
                changed.append({**at, "perturber": "rules", **done})
                if is_valid:
                    expected.append((side, True, NAMES[side], prompt_id, sample, text))
                    expected.append((other[side], False, NAMES[side], prompt_id, sample, text))
    fill(store, "probe_prompt", prompts)
    fill(store, "continuation", drawn)
    fill(store, "perturbed_continuation", changed)
    columns = ("side", "is_perturbed", "written_of", "prompt_id", "sample", "text")
    return store.root, [dict(zip(columns, row, strict=True)) for row in expected]


def words(text: str) -> list[str]:
    return re.findall(r"[a-z']+", text.lower())


def grams(text: str) -> set[str]:
    of = words(text)
    return {" ".join(of[i : i + n]) for n in range(1, 5) for i in range(len(of) - n + 1)}


def test_log_odds_against_plain_python(world: tuple[Path, Any]) -> None:
    rows = rows_of(world[0], "SELECT * FROM ngram_log_odds")
    for side in NAMES:
        of = [row for row in world[1] if row["side"] == side]
        n = Counter(row["is_perturbed"] for row in of)
        holding = Counter((g, row["is_perturbed"]) for row in of for g in grams(row["text"]))
        kept = {g for g, _ in holding if holding[g, True] + holding[g, False] >= 5}
        found = {row["ngram"]: row for row in rows if row["side"] == side}
        assert set(found) == kept and "it's a" in kept
        for gram, row in found.items():
            a, b = holding[gram, True] + 0.5, holding[gram, False] + 0.5
            c, d = n[True] + 1 - a, n[False] + 1 - b
            log_odds = math.log(a / c) - math.log(b / d)
            assert row["log_odds_nats"] == pytest.approx(log_odds, abs=1e-12)
            z = log_odds / math.sqrt(1 / a + 1 / b + 1 / c + 1 / d)
            assert row["z"] == pytest.approx(z, abs=1e-12)
            assert row["n_words"] == len(gram.split())
