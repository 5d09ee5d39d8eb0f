"""The two groups of texts of a prompt, read from the warehouse."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass

from plumbline.eval_workers.fairpair.phi import Phi
from plumbline.warehouse.errors import BadInput
from plumbline.warehouse.storage.store import Store

Row = Mapping[str, object]

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

    def items(self, phi: Phi) -> tuple[Sequence[object], Sequence[object]]:
        """The items of both groups."""
        return phi.items(self.pg), phi.items(self.gp)


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
    prompts = {
        str(row["prompt_id"]): row
        for row in store.read("probe_prompt", probe_set=sampled.probe_set).to_pylist()
    }
    pg: dict[tuple[str, str], list[str]] = defaultdict(list)
    failed = set()
    for row in _by_sample(rows.to_pylist()):
        side, prompt_id = str(row["side"]), str(row["prompt_id"])
        texts = pg[side, prompt_id]
        if row["is_valid"]:
            prompt = _prompt(prompts, prompt_id, sampled)[_PROMPT[_OTHER[side]]]
            texts.append(str(row["perturbed_text"]).removeprefix(str(prompt)))
        elif not as_published:
            failed.add((row["side"], row["prompt_id"], row["sample"]))
    gp: dict[tuple[str, str], list[str]] = defaultdict(list)
    del keys["perturber"]
    for row in _by_sample(store.read("continuation", **keys).to_pylist()):
        if (row["side"], row["prompt_id"], row["sample"]) in failed:
            continue
        gp[_OTHER[str(row["side"])], str(row["prompt_id"])].append(str(row["continuation"]))
    return [
        Group(side, _prompt(prompts, prompt_id, sampled), texts, gp[side, prompt_id])
        for (side, prompt_id), texts in sorted(pg.items())
    ]


def _by_sample(rows: list[Row]) -> list[Row]:
    # Files are in the order in which samples were drawn, over several runs if resumed.
    return sorted(rows, key=lambda row: int(str(row["sample"])))


def _prompt(prompts: Mapping[str, Row], prompt_id: str, sampled: PerturbedSamples) -> Row:
    if prompt_id not in prompts:
        problem = f"the prompt {prompt_id} of {sampled.probe_set} has continuations but no row"
        raise BadInput("table probe_prompt", problem, "write the set of prompts again")
    return prompts[prompt_id]
