"""Log-probabilities in what HELM logs (``scenario_state.json``), read into ``pair_score``.

HELM echoes a prompt with the log-probability of each of its tokens, where a method scores a given
text: a reference (``multiple_choice_separate_*``) or the input (``language_modeling``). The first
token of a prompt has none, which HELM writes as 0.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from plumbline.eval_workers.harness.documents import at, json_document, logs_below
from plumbline.eval_workers.harness.texts import Scored, ScoredBy, figure, identity, import_texts
from plumbline.eval_workers.released.scores import ImportedScores
from plumbline.warehouse.errors import BadInput
from plumbline.warehouse.storage.store import Store

_STATE = "scenario_state.json"
_NONE = "the log holds no log-probability of a given text"
_FIX = "score given texts, as the run does that `plumbline benchmark export --to helm` writes"


def import_helm(store: Store, directory: Path, run_id: str) -> list[ImportedScores]:
    """Read every ``scenario_state.json`` at any depth, by model.

    HELM logs neither its version nor a hash of weights: the deployment's name is the model's, and
    the backend is `helm`. Raises ``BadInput`` without any, for one that can't be read, where none
    has a method that scores a given text, and what ``import_texts`` raises.
    """
    models: dict[str, ScoredBy] = {}
    for path in logs_below(directory, (_STATE,)):
        state = json_document(path)
        model, method = at(state, "adapter_spec", "model"), at(state, "adapter_spec", "method")
        requests = at(state, "request_states")
        if not (isinstance(model, str) and isinstance(requests, list)):
            raise BadInput(f"{path}", "is not a scenario_state.json of HELM", "keep it as written")
        how = {"deployment": at(state, "adapter_spec", "model_deployment")}
        row = identity("helm", model.removeprefix("huggingface/"), None, **how)
        name = path.relative_to(directory).as_posix()
        texts = [Scored(name, 1, "", problem=f"{_NONE} (method {method})")]
        if any(at(one, "request", "echo_prompt") for one in requests):
            texts = [*_texts(name, requests)]
        known = models.get(row["model_key"], ScoredBy(row, []))
        models[row["model_key"]] = ScoredBy(row, [*known.texts, *texts])
    return import_texts(store, models.values(), run_id, _FIX)


def _texts(file: str, requests: list[Any]) -> Iterator[Scored]:
    for k, one in enumerate(requests, start=1):
        sentence = _sentence(one)
        found = _figure(one, sentence)
        if isinstance(found, str):
            yield Scored(file, k, sentence, problem=found)
        else:
            yield Scored(file, k, sentence, *found)


def _sentence(request: Any) -> str:
    """The text that a request scores: a reference, or the whole input."""
    which = at(request, "reference_index")
    if which is None:
        text = at(request, "instance", "input", "text")
    else:
        text = at(request, "instance", "references", which, "output", "text")
    return text if isinstance(text, str) else ""


def _figure(request: Any, sentence: str) -> tuple[float, int] | str:
    prompt, mode = at(request, "request", "prompt"), at(request, "request_mode")
    tokens = at(request, "result", "completions", 0, "tokens")
    if not sentence:
        return "it has no sentence"
    if mode == "calibration":
        return "a calibration scores the answer after another prompt"
    if not (isinstance(tokens, list) and tokens and isinstance(prompt, str)):
        return f"the request has no tokens: {at(request, 'result', 'error') or 'no result'}"
    pairs = [(str(at(t, "text")), at(t, "logprob")) for t in tokens]
    if not all(isinstance(value, int | float) for _, value in pairs):
        return "a token has no log-probability"
    before = prompt.removesuffix(sentence)
    if before not in ("", pairs[0][0]):
        return f"the prompt is not the sentence but {prompt[:40]!r}"
    first, value = pairs[0]
    return figure(sentence, [(first, value or None), *pairs[1:]])
