"""Continue the prompts of a set with a model behind an OpenAI-compatible server.

Each sample is a request with its own seed and its own row in the ledger. So a reply is never used
for two samples, and an answered request is never sent again. If the first few replies are nearly
the same for different seeds, an error ends the command before you pay for more samples.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import groupby, islice

from plumbline.eval_workers.chat.client import ServerOptions
from plumbline.eval_workers.chat.requests import (
    ChatModel,
    Endpoint,
    Reply,
    Request,
    TokenLimit,
)
from plumbline.eval_workers.chat.session import Build
from plumbline.eval_workers.models.sampling_contract import Sample, SamplingOptions, SeededPrompt
from plumbline.eval_workers.models.scoring_contract import Instruction, short_hash
from plumbline.eval_workers.scoring.continuations import Continuations
from plumbline.warehouse.errors import BadInput
from plumbline.warehouse.steps.runner import run_at_once
from plumbline.warehouse.steps.step import StepCounts
from plumbline.warehouse.storage.store import Store

#: Before all samples are requested, this many samples of this many prompts are checked.
_FIRST = 5
#: Samples with fewer tokens than this may be the same by chance.
_LONG = 8


@dataclass(frozen=True)
class ServedIdentity:
    """The known columns of table ``model`` for a model on a server. The other columns are NULL.

    >>> ServedModel("m").identity.backend
    'openai completions'
    """

    model: str
    backend: str

    @property
    def key(self) -> str:
        """A hash of the model's name and the backend (16 hex digits)."""
        return short_hash(asdict(self))


@dataclass(frozen=True)
class ServedModel:
    """A model on a server. Only the name that the server uses is known.

    The endpoint ``completions`` continues the prompt itself, which suits base models. The endpoint
    ``chat`` sends the prompt as a user's message, so ``SamplingOptions.instruction`` should ask the
    model to continue the prompt. ``ChatModel`` explains ``token_limit``. ``build`` sends the
    requests, so it must be set before samples are requested.
    """

    name: str
    endpoint: Endpoint = "completions"
    token_limit: TokenLimit = "max_tokens"
    build: Build | None = None
    n_parameters = None

    @property
    def identity(self) -> ServedIdentity:
        return ServedIdentity(self.name, f"openai {self.endpoint}")

    def ledger(self, *place: str) -> str:
        """Return a ledger's name: the strings in ``place`` and the model's key, joined by slashes.

        >>> ServedModel("m").ledger("common-sents")[:13]
        'common-sents/'
        """
        return "/".join((*place, self.identity.key))

    def lead(self, instruction: Instruction) -> str:
        """Return the text to put before a prompt to give the model its instruction."""
        return instruction.prefix

    def request(self, draw: SeededPrompt, options: SamplingOptions) -> Request:
        """Return the request for one sample. The sample's seed and number make the request unique.

        >>> options = SamplingOptions()
        >>> one, two = (ServedModel("m").request(options.seeded("It", k), options) for k in (0, 1))
        >>> dict(one.parameters)["top_p"], one.request_id == two.request_id
        (0.9, False)
        """
        cuts = {name: options.row()[name] for name in ("temperature", "top_p", "top_k")}
        settings = {name: value for name, value in cuts.items() if value is not None}
        return ChatModel(self.name, None, self.token_limit, self.endpoint).request(
            "continue",
            draw.text,
            word=draw.text_id,
            pronoun="",
            round=draw.sample + 1,
            max_tokens=options.max_new_tokens,
            seed=draw.seed,
            **(settings or {"temperature": 0.0}),
        )

    def continue_(self, draws: Sequence[SeededPrompt], options: SamplingOptions) -> list[Sample]:
        """Return a sample for each prompt and seed, in order.

        A few samples are requested first, to check whether the server uses seeds. Raises
        ``BadInput`` if the server ignores seeds. Also raises the errors of ``Build.replies``.
        """
        assert self.build is not None, "a model that is asked has a ledger"
        samples: dict[SeededPrompt, Sample] = {}
        for part in (_first(draws), draws):
            replies = self.build.replies([self.request(draw, options) for draw in part], "samples")
            samples = dict(zip(part, map(_sample, replies), strict=True))
            _check_seeds(samples, options)
        return list(samples.values())


def sample_from_server(
    store: Store,
    probe_set: str,
    model: ServedModel,
    server: ServerOptions,
    sampling: SamplingOptions,
    n: int,
    run_id: str,
) -> StepCounts:
    """Run the step ``Continuations`` on a server: request the samples that have no row yet.

    Requests are recorded in ``generation_request``, with the ledger's name as ``benchmark``. A
    reply is used if it is complete, or if it was cut at the token limit. Other replies, such as
    filtered replies, are rejected and not requested again. Raises ``UsageProblem`` for an
    instruction in the form `chat`, and ``BadInput`` for a server that ignores seeds. Also raises
    the errors of ``Continuations.check`` and ``Build.run``.
    """
    step = Continuations(probe_set, sampling, n)
    step.check(store)
    build = Build(store, model.ledger(probe_set), run_id, server)
    return step.outcome(run_at_once(store, replace(model, build=build), step, run_id))


def _first(draws: Sequence[SeededPrompt]) -> list[SeededPrompt]:
    """Return the first few samples of the first few prompts."""
    texts = groupby(sorted(draws), lambda draw: draw.text)
    return [draw for _, of_text in islice(texts, _FIRST) for draw in islice(of_text, _FIRST)]


def _sample(reply: Reply) -> Sample:
    """Turn a reply into a sample. Keep the token count only if the token limit cut the reply.

    Servers count the tokens of complete replies in different ways.
    """
    if reply.finish_reason == "stop":
        return Sample(reply.text, "stop")
    if reply.finish_reason == "length":
        return Sample(reply.text, "length", reply.n_output_tokens)
    return Sample(problem=f"the server ended it with {reply.finish_reason!r}, not stop or length")


def _check_seeds(samples: Mapping[SeededPrompt, Sample], options: SamplingOptions) -> None:
    """Raise ``BadInput`` if the samples of every prompt are nearly all the same.

    Such a server ignores seeds or caches replies. Nothing is checked if samples may be the same by
    chance, for example at a low temperature.
    """
    is_random = options.temperature >= 0.5 and (options.top_p or 1.0) >= 0.5 and options.top_k != 1
    if options.greedy or not is_random or options.max_new_tokens < _LONG:
        return
    texts: dict[str, list[str]] = {}
    for draw, sample in samples.items():
        if not sample.problem:
            texts.setdefault(draw.text, []).append(sample.text)
    several = [of_prompt for of_prompt in texts.values() if len(of_prompt) > 1]
    if several and all(len(set(s)) <= max(1, len(s) // 10) for s in several):
        n_texts, n_seeds = sum(len(set(of_prompt)) for of_prompt in several), sum(map(len, several))
        problem = (
            f"{n_texts} different texts for {n_seeds} seeds of {len(several)} prompts: the server "
            "ignores seeds or caches"
        )
        fix = "check how it uses seeds and caches, then use another seed: these replies are kept"
        raise BadInput("the server", problem, fix)
