"""The two groups of texts of a prompt, read from the warehouse."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import TypeAlias

from plumbline.warehouse.errors import BadInput
from plumbline.warehouse.storage.store import Store

Row: TypeAlias = Mapping[str, object]
#: Side and identifier of a prompt.
_Key: TypeAlias = tuple[str, str]

#: Side -> the other side, whose continuations are about the counterpart.
_OTHER = {"original": "perturbed", "perturbed": "original"}
_PROMPT = {"original": "prompt", "perturbed": "perturbed_prompt"}


@dataclass(frozen=True)
class PerturbedSamples:
    """Key of a set's perturbed samples: the first columns of ``perturbed_continuation``."""

    probe_set: str
    model_key: str
    sampling_key: str
    perturber: str


@dataclass(frozen=True)
class Group:
    """Texts of one prompt and side, in the order of their samples, without their prompts.

    ``pg`` are valid perturbations, ``gp`` continuations of the counterpart's prompt: p(g(x)) and
    g(p(x)) on the side `original`, p(g(p(x))) and g(x) on the side `perturbed`.
    """

    side: str
    prompt: Row
    pg: list[str]
    gp: list[str]

    @property
    def prompt_id(self) -> str:
        """Identifier of the prompt."""
        return str(self.prompt["prompt_id"])

    @property
    def cluster(self) -> str:
        """Cluster of similar prompts: occupation, else topic, else the prompt itself."""
        return str(self.prompt["occupation"] or self.prompt["topic"] or self.prompt_id)


def read_groups(store: Store, sampled: PerturbedSamples, as_published: bool = False) -> list[Group]:
    """Both groups of every prompt with perturbed samples, sorted by side, then prompt.

    g(p(x)), too, is limited to texts with a valid perturbation, since a text's content decides if
    it can be perturbed. ``as_published`` keeps all of g(p(x)), as section 3.3 of the paper does.
    A prompt without a valid sample has an empty ``pg``. Raises ``BadInput`` if nothing was
    perturbed, or for a continuation whose prompt is unknown.
    """
    keys = asdict(sampled)
    rows = store.read("perturbed_continuation", **keys)
    if not rows.num_rows:
        names = ", ".join(keys.values())
        problem = f"no row of {names} (probe set, model key, sampling key, perturber)"
        raise BadInput("table perturbed_continuation", problem, "sample and perturb them first")
    read = store.read("probe_prompt", probe_set=sampled.probe_set).to_pylist()
    prompts = {str(row["prompt_id"]): row for row in read}
    pg, gp = defaultdict[_Key, list[str]](list), defaultdict[_Key, list[str]](list)
    failed = set()
    # Files are in the order in which samples were drawn, over several runs if resumed.
    for row in rows.sort_by("sample").to_pylist():
        side, prompt_id = row["side"], row["prompt_id"]
        if prompt_id not in prompts:
            problem = f"the prompt {prompt_id} of {sampled.probe_set} has continuations but no row"
            raise BadInput("table probe_prompt", problem, "write the set of prompts again")
        texts = pg[side, prompt_id]
        if row["is_valid"]:
            prompt = prompts[prompt_id][_PROMPT[_OTHER[side]]]
            texts.append(row["perturbed_text"].removeprefix(prompt))
        elif not as_published:
            failed.add((side, prompt_id, row["sample"]))
    del keys["perturber"]
    for row in store.read("continuation", **keys).sort_by("sample").to_pylist():
        if (row["side"], row["prompt_id"], row["sample"]) not in failed:
            gp[_OTHER[row["side"]], row["prompt_id"]].append(row["continuation"])
    return [
        Group(side, prompts[prompt_id], texts, gp[side, prompt_id])
        for (side, prompt_id), texts in sorted(pg.items())
    ]
