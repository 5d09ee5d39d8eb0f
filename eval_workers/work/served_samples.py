"""Continue the prompts of a set with a model behind an OpenAI-compatible server.

Each sample is a request of its own, with its own seed and its own place in the ledger: nothing of
ours takes one reply for two samples, and what was answered is never asked again. Whether the server
does the same shows in what it answers: one that gives hardly any different texts for different
seeds is an error, first looked for in a few replies, before all are paid for.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from itertools import islice

from plumbline.eval_workers.chat.asker import Job
from plumbline.eval_workers.chat.budget import Budget, Price, Spent
from plumbline.eval_workers.chat.requests import Endpoint, Reply, Request, TokenLimit
from plumbline.eval_workers.chat.session import Build, Server
from plumbline.eval_workers.models.instruction import Instruction
from plumbline.eval_workers.models.model_options import ModelOptions
from plumbline.eval_workers.models.sampling import Draw, Sample, SamplingOptions
from plumbline.eval_workers.work.continuations import Continuations, Sampled, alike
from plumbline.eval_workers.work.runner import publish
from plumbline.eval_workers.work.step import Done
from plumbline.warehouse.errors import BadInput, disk_problems
from plumbline.warehouse.storage.store import Store
from plumbline.warehouse.text.progress import Update

#: Texts, and samples of each, that are looked at before the rest is asked for.
_FIRST = 5
#: Tokens below which samples may well be the same by chance.
_LONG = 8


@dataclass(frozen=True)
class ServedIdentity:
    """The columns of table ``model`` that are known of a served model; the others are NULL.

    >>> ServedModel("m").identity.backend
    'openai completions'
    """

    model: str
    backend: str

    @property
    def key(self) -> str:
        """Hash of both (16 hex digits)."""
        text = json.dumps(asdict(self), sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:16]


@dataclass(frozen=True)
class ServedModel:
    """A model as its server names it, which is all that is known of it.

    ``completions`` continues the prompt itself, as base models want; ``chat`` sends it as a user's
    message, for which ``SamplingOptions.instruction`` should say what to do with it.
    ``token_limit`` is the name of the parameter that bounds a reply: newer models of OpenAI want
    ``max_completion_tokens``.
    """

    name: str
    endpoint: Endpoint = "completions"
    token_limit: TokenLimit = "max_tokens"

    @property
    def identity(self) -> ServedIdentity:
        """What is known of it."""
        return ServedIdentity(self.name, f"openai {self.endpoint}")

    @property
    def n_parameters(self) -> None:
        """Not known."""

    def lead(self, instruction: Instruction) -> str:
        """What goes before a prompt to give an instruction."""
        return instruction.prefix

    def request(self, draw: Draw, options: SamplingOptions) -> Request:
        """The request for one sample; its seed and its number make it unlike any other.

        >>> options = SamplingOptions()
        >>> one, two = (ServedModel("m").request(options.draw("It", k), options) for k in (0, 1))
        >>> dict(one.parameters)["top_p"], one.request_id == two.request_id
        (0.9, False)
        """
        cuts = {name: options.row()[name] for name in ("temperature", "top_p", "top_k")}
        how = {name: value for name, value in cuts.items() if value is not None}
        parameters = {
            **(how or {"temperature": 0.0}),
            "seed": draw.seed,
            self.token_limit: options.max_new_tokens,
        }
        return Request(
            model=self.name,
            prompt=draw.text,
            parameters=tuple(sorted(parameters.items())),
            purpose="continue",
            word=draw.text_id,
            pronoun="",
            round=draw.sample + 1,
            max_tokens=options.max_new_tokens,
            endpoint=self.endpoint,
        )


def ledger_name(probe_set: str, model_key: str) -> str:
    """``Build.benchmark`` for sampling a probe set by a served model.

    >>> ledger_name("common-sents", "ab12")
    'common-sents/ab12'
    """
    return f"{probe_set}/{model_key}"


def sample_from_server(
    store: Store,
    probe_set: str,
    model: ServedModel,
    server: Server | None,
    sampling: SamplingOptions,
    n: int,
    run_id: str,
    budget: Budget | None = None,
    price: Price | None = None,
    progress: Update | None = None,
) -> Sampled:
    """Ask for the samples that have no row yet; see ``Continuations``, with what it writes.

    The requests are rows of ``generation_request`` under the set and the model's key. Without a
    ``server`` the ledger is replayed. A reply that the server's filter refused, or that ended for
    another reason than the model's end or the limit, is a row of ``reject``; such samples are not
    asked for again.

    Raises ``UsageProblem`` as ``Continuations`` does and for an instruction in the form `chat`,
    ``BadInput`` for a server that ignores seeds, and what ``Build.run`` raises.
    """
    step = Continuations(probe_set, sampling, n)
    step.check(store, ModelOptions())
    state = step.state(store, model)
    requests = {draw: model.request(draw, sampling) for draw in state.missing}
    asking = _Asking(progress, len(requests))
    ledger = ledger_name(probe_set, model.identity.key)
    build = Build(store, ledger, run_id, server, budget or Budget(), price, asking.tell)
    samples: dict[Draw, Sample] = {}
    for draws in (_first(state.missing), state.missing) if requests else ():
        replies = build.run([asking.job(requests[draw]) for draw in draws], "samples")
        samples = {draw: _sample(replies[requests[draw].request_id]) for draw in draws}
        _check_seeds(samples, sampling)
    done = Done(store, model, state, samples, step.made(model, state, samples), run_id)
    with disk_problems(store.root):
        publish(step, done)
    return step.outcome(done, asking.rate())


class _Asking:
    """One job per sample, and how fast replies came in this run."""

    def __init__(self, progress: Update | None, n_draws: int) -> None:
        self._progress, self._n_draws = progress, n_draws
        self._start = time.monotonic()
        self._asked: set[str] = set()
        self._answered: set[str] = set()

    def job(self, request: Request) -> Job:
        """Ask for one sample, unless the ledger has it."""

        def wanted_now(replies: Mapping[str, Reply]) -> list[Request]:
            key = request.request_id
            if key not in replies:
                self._asked.add(key)
                return [request]
            if key in self._asked:
                self._answered.add(key)
            return []

        return wanted_now

    def rate(self) -> float | None:
        """Replies a second since the start; ``None`` before the first."""
        n_new = len(self._answered)
        return n_new / (time.monotonic() - self._start) if n_new else None

    def tell(self, n_done: int, n_jobs: int, spent: Spent) -> None:
        """A job was done."""
        if self._progress is not None:
            self._progress(n_done, self._n_draws, self.rate())


def _first(draws: Iterable[Draw]) -> list[Draw]:
    """A few samples of a few texts."""
    by_text: dict[str, list[Draw]] = {}
    for draw in sorted(draws):
        by_text.setdefault(draw.text, []).append(draw)
    return [draw for found in islice(by_text.values(), _FIRST) for draw in found[:_FIRST]]


def _sample(reply: Reply) -> Sample:
    """A reply as a sample; servers differ in whether the end token is among those they count."""
    if reply.finish_reason == "stop":
        return Sample(reply.text, "stop")
    if reply.finish_reason == "length":
        return Sample(reply.text, "length", reply.n_output_tokens)
    return Sample(problem=f"the server ended it with {reply.finish_reason!r}, not stop or length")


def _check_seeds(samples: Mapping[Draw, Sample], options: SamplingOptions) -> None:
    """Raise ``BadInput`` when different seeds gave hardly any different texts, of all prompts.

    Where hardly anything is left to chance, as at a low temperature, that may well be right.
    """
    if options.greedy or options.top_k == 1 or options.temperature < 0.5:
        return
    if (options.top_p or 1.0) < 0.5 or options.max_new_tokens < _LONG:
        return
    texts: dict[str, list[str]] = {}
    for draw, sample in samples.items():
        if not sample.problem:
            texts.setdefault(draw.text, []).append(sample.text)
    several = [found for found in texts.values() if len(found) > 1]
    if several and all(map(alike, several)):
        n_texts, n_seeds = sum(len(set(found)) for found in several), sum(map(len, several))
        given = f"{n_texts} different texts" if n_texts > 1 else "one text"
        draws = f"{n_seeds} seeds of {len(several)} prompts"
        problem = f"{given} for {draws}: the server ignores seeds or caches"
        fix = "see to its seeds and cache, then draw with another seed: these replies are kept"
        raise BadInput("the server", problem, fix)
