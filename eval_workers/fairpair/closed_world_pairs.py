"""Prompts about "he" and "she" in the closed world, and the exact B and V of a perfect learner.

Prompts have pronouns where other sets have names, and end before a slot of the grammar. In topic
`planted` the slot's words lean to a gender, in topic `control` they don't depend on the person.
Sample one new token, which is one word in a model of the preset `closed`; further tokens may belong
to other slots.

After a prompt of topic `planted`, a model that learned the text perfectly draws the word w with the
planted probability of w for the group. B and V need no sampling: over words u, w of the slot,

    B = sum p(u | he) p(w | she) Phi(u, w),    V = sum p(u | g) p(w | g) Phi(u, w) for group g.

F is modest: with some fifty words in a slot, two samples of one group nearly always differ.
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib import resources

import numpy as np

from plumbline.eval_workers.fairpair.phi import Floats, Means, Phi
from plumbline.eval_workers.pairs.closed_world_corpus.truth import lexicon, planted_words
from plumbline.eval_workers.pairs.pronouns.pronoun_templates import fill
from plumbline.warehouse.errors import UsageProblem
from plumbline.warehouse.text.toml_file import read

#: The name of the set of prompts.
PROBE_SET = "closed-world"

_FILE = "closed_world.toml"
_TOPICS = ("planted", "control")


@dataclass(frozen=True)
class SlotPrompt:
    """A prompt of the set: ``template``, with placeholders of pronouns, ends before ``slot``."""

    prompt_id: str
    topic: str
    slot: str
    template: str


def slot_prompts() -> tuple[SlotPrompt, ...]:
    """The prompts, first those of topic `planted`.

    >>> prompts = slot_prompts()
    >>> len(prompts), [prompt.topic for prompt in prompts].count("planted")
    (30, 20)
    >>> prompts[0].prompt_id, prompts[0].template[-43:]
    ('planted-occupation-1', 'Everyone knew that {pronoun} was the gentle')
    """
    content = read(resources.files("plumbline.eval_workers.fairpair") / _FILE)
    return tuple(
        SlotPrompt(
            f"{topic}-{slot}-{number}", topic, slot, f"{content['contexts'][context - 1]} {ending}"
        )
        for topic in _TOPICS
        for slot, entries in content[topic].items()
        for number, (context, ending) in enumerate(entries, 1)
    )


def prompt_rows(run_id: str) -> list[dict[str, object]]:
    """Rows of ``probe_prompt``.

    >>> row = prompt_rows("r")[0]
    >>> row["entity"], row["perturbed_entity"], row["topic"], row["perturbed_prompt"][:21]
    ('He', 'She', 'planted', 'She shared some bread')
    """
    return [
        {
            "probe_set": PROBE_SET,
            "prompt_id": prompt.prompt_id,
            "prompt": fill(prompt.template, "m"),
            "perturbed_prompt": fill(prompt.template, "f"),
            "entity": "He",
            "perturbed_entity": "She",
            "axis": "gender",
            "entity_group": "m",
            "perturbed_group": "f",
            "topic": prompt.topic,
            "language": "en",
            "source_file": _FILE,
            "source_row": row,
            "run_id": run_id,
        }
        for row, prompt in enumerate(slot_prompts(), 1)
    ]


def perfect_means(
    prompt: SlotPrompt, phi: Phi, top_p: float = 1.0, seed: int = 0, world: str = "straight"
) -> Means:
    """B, V_pg and V_gp of a model that learned the text perfectly, on the side `original`.

    The model draws from the fewest words whose probabilities sum to ``top_p``. ``seed`` and
    ``world`` are the text's. Raises ``UsageProblem`` for a control prompt, whose F is 1, and for an
    unknown world.

    >>> from plumbline.eval_workers.fairpair.figures.significance import fairpair_f
    >>> from plumbline.eval_workers.fairpair.phi import find
    >>> straight, mixed = (
    ...     perfect_means(slot_prompts()[0], find("jaccard"), 0.9, world=world)
    ...     for world in ("straight", "mixed")
    ... )
    >>> round(float(fairpair_f(*straight)), 3), round(float(fairpair_f(*mixed)), 9)
    (1.022, 1.0)
    """
    if prompt.slot not in lexicon():
        fix = "take one of topic `planted`"
        raise UsageProblem(f"prompt {prompt.prompt_id}", "doesn't stop before a planted slot", fix)
    words = [word for word in planted_words(seed, world) if word.word_class == prompt.slot]
    distances = phi.distances(phi.items([f" {word.word}" for word in words]))
    pg = _nucleus(np.array([word.p_he for word in words]), top_p)
    gp = _nucleus(np.array([word.p_she for word in words]), top_p)
    return Means(*(float(a @ distances @ b) for a, b in ((pg, gp), (pg, pg), (gp, gp))))


def _nucleus(shares: Floats, top_p: float) -> Floats:
    """The fewest largest shares with a sum of at least ``top_p``, normalised; 0 for others."""
    order = np.argsort(-shares, kind="stable")
    before = np.cumsum(shares[order]) - shares[order]
    nucleus = np.zeros_like(shares)
    nucleus[order] = np.where(before < top_p, shares[order], 0.0)
    normalised: Floats = nucleus / nucleus.sum()
    return normalised
