"""Hub ids of models by the names that released files give them."""

from __future__ import annotations

import re

from plumbline.eval_workers.models.model_lists import load

#: The 28 models that UnStereoEval (Belem et al., ICLR 2024) evaluates, by the ids it names them by,
#: with their numbers of parameters.
N_PARAMETERS = {entry.name: entry.n_parameters for entry in load("unstereoeval")}
HUB_IDS = tuple(N_PARAMETERS)

_BY_LOWER = {hub_id.lower(): hub_id for hub_id in HUB_IDS}
# The authors kept Llama 2 in a directory of their own, in part as a cache of the hub's snapshots.
_SIZE = re.compile(r"(?:^|/)llama-2/hf_models/(7b|13b|70b)$")
_SNAPSHOT = re.compile(r"(?:^|/)models--([^/]+?)--([^/]+)/snapshots/[0-9a-f]+$")


def model_id(name: str) -> str:
    """The hub id of a model named in a released file or file name; ``__`` stands for ``/``.

    Matches the 28 ids without regard to case, also as the end of a local path. Any other name is
    kept as it is, with ``/``.

    >>> model_id("EleutherAI__pythia-70m"), model_id("allenai/olmo-1b")
    ('EleutherAI/pythia-70m', 'allenai/OLMo-1B')
    >>> model_id("__extra__ucinlp1__llama-2__hf_models__7B")
    'meta-llama/Llama-2-7b-hf'
    >>> model_id("/cache/models--meta-llama--Llama-2-70b-hf/snapshots/90052941a64de020")
    'meta-llama/Llama-2-70b-hf'
    >>> model_id("someone__pythia-70m")
    'someone/pythia-70m'
    """
    path = name.strip().replace("__", "/")
    lower = path.lower()
    if size := _SIZE.search(lower):
        return f"meta-llama/Llama-2-{size[1]}-hf"
    if snapshot := _SNAPSHOT.search(lower):
        lower = f"{snapshot[1]}/{snapshot[2]}"
    return _BY_LOWER.get("/".join(lower.split("/")[-2:]), path)
