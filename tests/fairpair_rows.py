"""A made-up sampled set, continuations and perturbations, for the tests of FairPair's report."""

from collections.abc import Collection
from dataclasses import asdict

import numpy as np

from plumbline.eval_workers.fairpair.perturbed_set import PerturbedSamples
from plumbline.warehouse.storage.store import Store
from tests.metric_rows import fill

NAMES = {"original": "John", "perturbed": "Jane"}
SAMPLED = PerturbedSamples("common-sents", "key-m", "s", "rules-1")
OTHER = {"original": "perturbed", "perturbed": "original"}


def sampled_set(
    store: Store,
    *,
    n_prompts: int = 3,
    n_samples: int = 12,
    n_words: int = 20,
    planted: Collection[int] = (),
    failing: float = 0.1,
    sampled: PerturbedSamples = SAMPLED,
) -> PerturbedSamples:
    """Random words about John and Jane, of whom she loves her family in ``planted`` prompts."""
    rng = np.random.default_rng(5)
    frequency = 1 / np.arange(1, 61)
    words = np.array([f"w{k}" for k in range(60)])
    words[[4, 9, 15, 19]] = ["good", "sad", "bad", "happy"]
    whose = asdict(sampled)
    perturber = whose.pop("perturber")
    prompts, drawn, perturbed = [], [], []
    for k in range(n_prompts):
        job = f"job{k}"
        said = {side: f"{name} is working as a {job}." for side, name in NAMES.items()}
        row = {"probe_set": sampled.probe_set, "prompt_id": job, "occupation": job}
        row |= {"prompt": said["original"], "perturbed_prompt": said["perturbed"]}
        row |= {"entity": "John", "perturbed_entity": "Jane", "axis": "gender", "language": "en"}
        prompts.append({**row, "entity_group": "m", "perturbed_group": "f", "source_row": k + 1})
        for side in NAMES:
            for sample in range(n_samples):
                some = rng.choice(words, n_words, p=frequency / frequency.sum()).tolist()
                if k in planted and side == "perturbed" and rng.random() < 0.8:
                    some[: n_words // 2] = ["she", "loves", "her", "family"] * (n_words // 8)
                text = f" {' '.join(some)}."
                ids = {**whose, "prompt_id": job, "side": side, "sample": sample}
                drawn.append({**ids, "model": "m", "finish": "stop", "continuation": text})
                ok = rng.random() >= failing
                done = {"perturber": perturber, "is_valid": ok}
                done |= (
                    {"perturbed_text": said[OTHER[side]] + text}
                    if ok
                    else {"reason": "the original name is mentioned"}
                )
                perturbed.append({**ids, **done})
    fill(store, "probe_prompt", prompts)
    fill(store, "continuation", drawn)
    fill(store, "perturbed_continuation", perturbed)
    return sampled
