"""Does debias tuning hold for words it never saw? Tried where the lean is known: the closed world.

Adapters are tuned on `closed-world-train` against `she-he`, one for each setting, and measured as
the base is: on that set, on other words, in other frames, and by words that tuning never saw. View
``tuning_effect`` then shows what fell. What it costs shows in documents that the model never saw.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from plumbline.eval_workers.disclosure.closed_world_prompts import SETS, TRAIN, pair_list
from plumbline.eval_workers.disclosure.prompt_sets import import_probe
from plumbline.eval_workers.disclosure.word_probabilities import ProbeStep, load_words
from plumbline.eval_workers.models.model_options import ModelOptions
from plumbline.eval_workers.models.sampling_contract import SamplingOptions
from plumbline.eval_workers.pairs.closed_world_corpus.corpus_writer import WorldOptions, documents
from plumbline.eval_workers.work.continuations import Continuations
from plumbline.eval_workers.work.runner import opened, releases_memory, run_opened
from plumbline.warehouse.storage.store import Store

if TYPE_CHECKING:
    from plumbline.eval_workers.models.scoring_contract import TextScore
    from plumbline.eval_workers.training.mitigation.tuning_options import TuneOptions

#: Setting -> weights of the losses: all, without one of them, one alone.
WEIGHTS: Mapping[str, Mapping[str, float]] = {
    "all": {},
    "no-distance": {"distance": 0.0},
    "no-total": {"total": 0.0},
    "no-difference": {"difference": 0.0},
    "only-distance": {"total": 0.0, "difference": 0.0},
    "only-total": {"distance": 0.0, "difference": 0.0},
    "only-difference": {"distance": 0.0, "total": 0.0},
}
#: Greedy continuations: the next word, and as many as the paper has.
SAMPLINGS = tuple(SamplingOptions(greedy=True, max_new_tokens=n) for n in (1, 50))
#: A shard that no corpus of fewer shards has: its documents are new, the world's leans the same.
_NEW_SHARD = 999
_N_DOCUMENTS = 300
_PRONOUNS = frozenset({"she", "he", "her", "his", "him"})


@dataclass(frozen=True)
class TextCost:
    """Mean log-probability a token (nats) of new documents: of pronouns, and of all other tokens.

    ``tuning`` is the setting, empty for the base. Pronouns tell a person's gender again and again:
    to make them unlikely there too is what tuning does not mean to do.
    """

    tuning: str
    n_documents: int
    pronoun_nats: float
    other_nats: float


def study(
    store: Store,
    model: str,
    out: str | Path,
    run_id: str,
    options: TuneOptions,
    weights: Mapping[str, Mapping[str, float]] = WEIGHTS,
    *,
    world: str = "straight",
    seed: int = 0,
    samplings: Sequence[SamplingOptions] = SAMPLINGS,
    progress: Callable[[str], None] = lambda line: None,
) -> list[TextCost]:
    """Measure ``model``, then tune and measure an adapter ``<out>/<setting>`` for each of weights.

    ``options`` are those of all settings but for the weights of the losses and the word list;
    ``world`` and ``seed`` are those of the text that the model was trained on. Fills
    ``probe_prompt``, ``pronoun_probability``, ``continuation``, ``tuning`` and what belongs to
    them; raises what these steps raise. What is done already is not done again. Returns the base's
    cost, then each setting's.
    """
    from plumbline.eval_workers.training.mitigation.tune import tune

    for name in SETS:
        import_probe(store, name, None, run_id)
    written = documents(WorldOptions(world=world, seed=seed), _NEW_SHARD)
    texts = [text for text, _ in islice(written, _N_DOCUMENTS)]
    progress("base")
    _measure(store, model, None, samplings, run_id)
    costs = [text_cost("", model, None, texts)]
    for setting, changed in weights.items():
        progress(setting)
        given: dict[str, Any] = {"word_list": pair_list(TRAIN), **changed}
        how = replace(options, **given)
        done = tune(store, model, ModelOptions(), how, run_id, sets=[TRAIN], name=setting, out=out)
        _measure(store, model, str(done.path), samplings, run_id)
        costs.append(text_cost(setting, model, str(done.path), texts))
    return costs


def text_cost(tuning: str, model: str, adapter: str | None, texts: Sequence[str]) -> TextCost:
    """The log-probability of texts under a model, or an adapter on it; NaN without any token."""
    from plumbline.eval_workers.models import open_backend

    backend = open_backend(model, ModelOptions(adapter=adapter, per_token=True))
    scores = backend.score(texts)
    pieces = backend.pieces({token for score in scores for token in score.token_ids})
    values: dict[bool, list[float]] = {True: [], False: []}
    for piece, value in _by_token(scores, pieces):
        values[piece.strip().lower() in _PRONOUNS].append(value)
    means = [math.fsum(v) / len(v) if v else math.nan for v in (values[True], values[False])]
    return TextCost(tuning, len(texts), *means)


def _by_token(
    scores: Sequence[TextScore], pieces: Mapping[int, str]
) -> Iterator[tuple[str, float]]:
    for score in scores:
        for token, value in zip(score.token_ids, score.token_logprobs_nats, strict=True):
            yield pieces[token], value


@releases_memory
def _measure(
    store: Store,
    model: str,
    adapter: str | None,
    samplings: Sequence[SamplingOptions],
    run_id: str,
) -> None:
    probes = [ProbeStep(name, load_words(store, pair_list(name))) for name in SETS]
    continuations = [Continuations(name, way, 1) for name in SETS for way in samplings]
    with opened(store, model, ModelOptions(adapter=adapter)) as backend:
        run_opened(store, backend, probes, run_id)
        run_opened(store, backend, continuations, run_id)
