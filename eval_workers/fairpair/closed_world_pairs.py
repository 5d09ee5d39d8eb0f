"""Prompts about "he" and "she" in the closed world.

Prompts have pronouns where other sets have names, and end before a slot of the grammar. In topic
`planted` the slot's words lean to a gender, in topic `control` they don't depend on the person.
Sample one new token, which is one word in a model of the preset `closed`; further tokens may belong
to other slots. F is modest: with some fifty words in a slot, two samples of one group nearly always
differ.
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib import resources

from plumbline.eval_workers.pairs.pronouns.pronoun_templates import fill
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
