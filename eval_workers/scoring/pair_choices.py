"""Ask a model to choose one sentence of each pair. Log-probabilities aren't needed.

The model is asked about each pair equally often in both orders. A preference for the sentence shown
first then cancels out. The views ``forced_choice_pair`` and ``forced_choice`` have the results.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from importlib import resources
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import Field
from pydantic.dataclasses import dataclass as options_class

from plumbline.eval_workers.chat.client import AskingOptions
from plumbline.eval_workers.chat.ledger import read_ledger
from plumbline.eval_workers.chat.replies import chosen
from plumbline.eval_workers.chat.requests import Reply, Request, Spent
from plumbline.eval_workers.chat.session import Build
from plumbline.eval_workers.models.scoring_contract import short_hash
from plumbline.eval_workers.scoring.model_step import ModelStep
from plumbline.eval_workers.scoring.pair_scores import text_id
from plumbline.eval_workers.scoring.served_samples import ServedModel
from plumbline.warehouse.errors import BadInput, UsageProblem
from plumbline.warehouse.options import STRICT
from plumbline.warehouse.steps.claimed_chunks import Chunk
from plumbline.warehouse.steps.runner import run_at_once
from plumbline.warehouse.steps.step import NewRows, State, state_of
from plumbline.warehouse.text.toml_file import parsed

if TYPE_CHECKING:
    from plumbline.warehouse.storage.store import Store

Side = Literal["a", "b"]
#: The number of questions to send first. Their replies are checked before the rest is sent.
_FIRST = 20
_OTHER: Mapping[Side, Side] = {"a": "b", "b": "a"}
_EXCERPT = 80
_WORDINGS = "choice_prompts.toml"


@cache
def wordings() -> tuple[str, ...]:
    """Return the different wordings of the question, which are used in turn."""
    text = (resources.files("plumbline.eval_workers.scoring") / _WORDINGS).read_text("utf-8")
    return tuple(wording.strip() for wording in parsed(text, _WORDINGS)["choose"])


@options_class(frozen=True, config=STRICT)
class ChoiceOptions(AskingOptions):
    """Options of `score choose`. Raises ``UsageProblem`` if no model is given."""

    n: Annotated[
        int,
        Field(
            gt=0,
            le=1_000,
            description="Number of questions per pair, for each order of its two sentences.",
        ),
    ] = 4
    temperature: Annotated[float, Field(ge=0, le=10, description="Sampling temperature.")] = 1.0
    max_new_tokens: Annotated[
        int, Field(gt=0, le=100_000, description="Maximum number of tokens per reply.")
    ] = 16

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.model:
            raise UsageProblem("model", "is not given", "give --model NAME")

    def key(self) -> str:
        """Return a hash of the settings that can change a choice, except the model's name.

        >>> one, two = ChoiceOptions(model="m"), ChoiceOptions(model="m", n=9)
        >>> one.key() == two.key(), one.key() == ChoiceOptions(model="m", temperature=0.0).key()
        (True, False)
        """
        return short_hash([wordings(), self.temperature, self.max_new_tokens])


@dataclass(frozen=True)
class Ask:
    """A question about a pair. ``ask`` numbers the repetitions of the question, from 0."""

    pair_id: str
    sentence_a: str
    sentence_b: str
    shown_first: Side
    ask: int

    def request(self, options: ChoiceOptions) -> Request:
        """Return the request. Its wording depends on ``ask``, not on the order of the sentences.

        >>> ask = Ask("1", "She ran.", "He ran.", "b", 0)
        >>> ask.request(ChoiceOptions(model="m")).prompt.splitlines()[2:4]
        ['1. He ran.', '2. She ran.']
        """
        shown = [self.sentence_a, self.sentence_b]
        first, second = shown if self.shown_first == "a" else reversed(shown)
        wording = wordings()[self.ask % len(wordings())]
        return options.chat_model().request(
            "choose",
            wording.format(first=first, second=second),
            word=self.pair_id,
            pronoun=self.shown_first,
            round=self.ask + 1,
            temperature=options.temperature,
            max_tokens=options.max_new_tokens,
        )

    def choice(self, reply: Reply) -> Side | None:
        """Return the sentence that a reply chooses, `a` or `b`, or ``None`` if it chooses neither.

        >>> Ask("1", "She ran.", "He ran.", "b", 0).choice(Reply("r", "1"))
        'b'
        """
        sides = {1: self.shown_first, 2: _OTHER[self.shown_first]}
        number = chosen(reply.text)
        return sides[number] if number else None


@dataclass(frozen=True)
class PairChoices(ModelStep):
    """Asks a model about each natural pair of a benchmark, and stores its choices.

    Questions with a stored choice aren't asked again. If a pair's sentences have changed, its old
    rows are removed and its questions are asked again. Rows from an earlier, larger ``n`` are kept.
    """

    benchmark: str
    options: ChoiceOptions

    table = "pair_choice"
    key = ("pair_id",)
    order = ("pair_id", "shown_first", "ask")
    stage = "choose"
    verb = "ask"
    unit = "asks"

    @property
    def label(self) -> str:
        return self.benchmark

    def partition(self, model: Any) -> dict[str, str]:
        setting = self.options.key()
        return {"benchmark": self.benchmark, "model_key": model.identity.key, "setting": setting}

    def state(self, store: Store, model: ServedModel) -> State:
        """Return the natural pairs, the stored choices, and the questions that are left."""
        pairs = store.read("benchmark_pair", benchmark=self.benchmark).to_pylist()
        natural = [{**p, "text_id": text_id(p)} for p in pairs if p["is_natural"] is not False]
        rows = store.read(self.table, **self.partition(model)).to_pylist()
        state = state_of(natural, rows, *self.key)
        asked = {(row["pair_id"], row["shown_first"], row["ask"]) for row in state.kept}
        missing = [
            Ask(pair["pair_id"], pair["sentence_a"], pair["sentence_b"], side, ask)
            for ask in range(self.options.n)
            for pair in natural
            for side in _OTHER
            if (pair["pair_id"], side, ask) not in asked
        ]
        return replace(state, missing=missing)

    def chunks(self, missing: Sequence[Ask]) -> Iterator[Chunk]:
        """Yield all questions as one chunk, because the ledger already saves each reply."""
        if missing:
            yield Chunk(missing, len(missing))

    def compute(self, model: ServedModel, items: Sequence[Ask]) -> list[Reply]:
        """Return the reply to each question. Send only questions without a reply in the ledger.

        Raises ``BadInput`` if none of the first ``_FIRST`` replies chooses a sentence. Also raises
        the errors of ``Build.replies``.
        """
        assert model.build is not None, "a model that is asked has a ledger"
        requests = [item.request(self.options) for item in items]
        first = model.build.replies(requests[:_FIRST], "asks")
        if len(first) == _FIRST and not any(map(Ask.choice, items, first)):
            shown = repr(first[0].text[:_EXCERPT])
            problem = f"none of {_FIRST} replies names a sentence, the first is {shown}"
            raise BadInput(f"model {model.name}", problem, "give a larger --max-new-tokens")
        return model.build.replies(requests, "asks")

    def new_rows(self, model: ServedModel, state: State, results: Mapping[Ask, Reply]) -> NewRows:
        """Return a row per question. If the reply chooses neither sentence, ``choice`` is NULL."""
        text_ids = {pair["pair_id"]: pair["text_id"] for pair in state.wanted}
        rows = [
            {
                "pair_id": ask.pair_id,
                "model": model.identity.model,
                "text_id": text_ids[ask.pair_id],
                "shown_first": ask.shown_first,
                "ask": ask.ask,
                "choice": ask.choice(results[ask]),
                "request_id": results[ask].request_id,
            }
            for ask in state.missing
        ]
        return NewRows(rows)


def served(options: ChoiceOptions) -> ServedModel:
    return ServedModel(options.model, "chat", options.token_limit)


def choose(store: Store, benchmark: str, options: ChoiceOptions, run_id: str) -> None:
    """Ask a model the questions about a benchmark's pairs that have no stored choice.

    Writes ``pair_choice`` and ``model``, and records the requests in ``generation_request``. Raises
    the errors of ``PairChoices`` and ``Build.run``. After an error, earlier replies are kept.
    """
    model = served(options)
    ledger = model.ledger("choose", benchmark)
    build = Build(store, ledger, run_id, options)
    run_at_once(store, replace(model, build=build), PairChoices(benchmark, options), run_id)


def left_to_ask(store: Store, benchmark: str, options: ChoiceOptions) -> tuple[int, Spent, Spent]:
    """Return the number of questions left, their largest cost without retries, and past costs."""
    model = served(options)
    ledger = read_ledger(store, model.ledger("choose", benchmark))
    missing = PairChoices(benchmark, options).state(store, model).missing
    requests = [ask.request(options) for ask in missing]
    left = [request for request in requests if request.request_id not in ledger.replies]
    return len(left), sum((request.most for request in left), Spent()), ledger.spent
