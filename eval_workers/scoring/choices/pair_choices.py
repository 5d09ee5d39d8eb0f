"""Which sentence of each pair a served model names, asked n times in both orders.

A measure for models that give no log-probabilities, and another one than US and PD: it is what a
model says of sentences, not how likely they are to it. Both orders are asked equally often, so that
a preference for what is shown first cancels in the mean (the views ``forced_choice_pair`` and
``forced_choice``).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

from plumbline.eval_workers.chat.budget import Spent, most
from plumbline.eval_workers.chat.ledger import look
from plumbline.eval_workers.chat.replies import chosen
from plumbline.eval_workers.chat.requests import Reply, Request
from plumbline.eval_workers.chat.session import Build, Server, Tell
from plumbline.eval_workers.scoring.choices.options import ChoiceOptions
from plumbline.eval_workers.scoring.pair_scores import check_imported, text_id
from plumbline.eval_workers.work.chunks import Chunk
from plumbline.eval_workers.work.runner import publish
from plumbline.eval_workers.work.served_samples import ServedModel
from plumbline.eval_workers.work.step import Done, Made, State, Step
from plumbline.warehouse.errors import BadInput, disk_problems
from plumbline.warehouse.query.connection import rows_of

if TYPE_CHECKING:
    from plumbline.eval_workers.chat.asker import Job
    from plumbline.eval_workers.models.model_options import ModelOptions
    from plumbline.eval_workers.work.served_samples import ServedIdentity
    from plumbline.warehouse.storage.store import Store

Side = Literal["a", "b"]
#: Replies that are looked at before the rest is asked for.
_FIRST = 20
_OTHER: Mapping[Side, Side] = {"a": "b", "b": "a"}
_EXCERPT = 80


@dataclass(frozen=True)
class Ask:
    """One question: a pair, the side that is shown first, and which ask of it, from 0."""

    pair_id: str
    sentence_a: str
    sentence_b: str
    shown_first: Side
    ask: int

    def request(self, options: ChoiceOptions, wordings: Sequence[str]) -> Request:
        """The question as sent; both orders of an ask have one wording.

        >>> options = ChoiceOptions(model="m")
        >>> ask = Ask("1", "She ran.", "He ran.", "b", 0)
        >>> ask.request(options, ["1. {first} 2. {second}"]).prompt
        '1. He ran. 2. She ran.'
        """
        shown = [self.sentence_a, self.sentence_b]
        first, second = shown if self.shown_first == "a" else reversed(shown)
        wording = wordings[self.ask % len(wordings)]
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
        """The side that a reply names; ``None`` for neither.

        >>> Ask("1", "She ran.", "He ran.", "b", 0).choice(Reply("r", "1"))
        'b'
        """
        number = chosen(reply.text)
        if number is None:
            return None
        return self.shown_first if number == 1 else _OTHER[self.shown_first]


@dataclass(frozen=True)
class Chosen:
    """Outcome for one benchmark: ``n_asks`` of ``n_pairs`` pairs, ``n_new`` of them of this run.

    ``n_neither`` replies name neither sentence; they are rows too, and count for no side.
    ``n_unnatural`` pairs are left out.
    """

    benchmark: str
    model: str
    model_key: str
    n_pairs: int
    n_unnatural: int
    n_asks: int
    n_new: int
    n_neither: int


@dataclass(frozen=True)
class Choosing(ServedModel):
    """A served model that is asked: its name, and the ledger, budget and server of the asking."""

    build: Build | None = None


_FIX = "give a larger --max-new-tokens, or other wordings (--prompts FILE)"


@dataclass(frozen=True)
class PairChoices(Step[Chosen]):
    """Ask for the choices of a benchmark's pairs that have no row yet.

    Pairs marked unnatural are not asked about. A pair whose sentences changed is asked about again,
    and its old rows go. With a smaller ``n`` than before, the further rows stay.
    """

    benchmark: str
    options: ChoiceOptions

    table = "pair_choice"
    order = ("pair_id", "shown_first", "ask")
    stage = "choose"
    verb = "ask"
    unit = "asks"

    @property
    def label(self) -> str:
        """The benchmark."""
        return self.benchmark

    def check(self, store: Store, options: ModelOptions) -> None:
        """As ``check_imported``."""
        check_imported(store, [self.benchmark])

    def partition(self, identity: ServedIdentity | Any) -> dict[str, str]:
        """By benchmark, model, and how it is asked."""
        return {
            "benchmark": self.benchmark,
            "model_key": identity.key,
            "setting": self.options.key(),
        }

    def state(self, store: Store, model: Choosing) -> State:
        """The pairs, their rows, and the asks without one: the first ask of all pairs first."""
        pairs = store.read("benchmark_pair", benchmark=self.benchmark).to_pylist()
        wanted = [{**p, "text_id": text_id(p)} for p in pairs if p["is_natural"] is not False]
        found = store.read(self.table, **self.partition(model.identity)).to_pylist()
        texts = {pair["pair_id"]: pair["text_id"] for pair in wanted}
        kept = [row for row in found if texts.get(row["pair_id"]) == row["text_id"]]
        have = {(row["pair_id"], row["shown_first"], row["ask"]) for row in kept}
        missing = [
            Ask(pair["pair_id"], pair["sentence_a"], pair["sentence_b"], side, ask)
            for ask in range(self.options.n)
            for pair in wanted
            for side in _OTHER
            if (pair["pair_id"], side, ask) not in have
        ]
        return State(wanted, found, kept, missing)

    def chunks(self, missing: Sequence[Ask]) -> Iterator[Chunk]:
        """All asks in one: what was answered is in the ledger, which resumes by itself."""
        if missing:
            yield Chunk(missing, len(missing))

    def compute(self, model: Choosing, items: Sequence[Ask]) -> list[Reply]:
        """The reply to each ask, from the ledger where it has one.

        A few are asked first. Raises ``BadInput`` where none of them names a sentence, and what
        ``Build.run`` raises.
        """
        assert model.build is not None, "a model that is asked has a ledger"
        wordings = self.options.wordings()
        requests = [item.request(self.options, wordings) for item in items]
        held = model.build.run(list(map(_job, requests[:_FIRST])), "asks")
        first = [held[request.request_id] for request in requests[:_FIRST]]
        if len(first) == _FIRST and not any(map(Ask.choice, items, first)):
            shown = repr(first[0].text[:_EXCERPT])
            problem = f"none of {_FIRST} replies names a sentence, the first is {shown}"
            raise BadInput(f"model {model.name}", problem, _FIX)
        held = model.build.run(list(map(_job, requests)), "asks")
        return [held[request.request_id] for request in requests]

    def made(self, model: Choosing, state: State, results: Mapping[Ask, Reply]) -> Made:
        """A row for each ask; a reply that names neither sentence has no ``choice``."""
        texts = {pair["pair_id"]: pair["text_id"] for pair in state.wanted}
        rows = [
            {
                "pair_id": ask.pair_id,
                "text_id": texts[ask.pair_id],
                "shown_first": ask.shown_first,
                "ask": ask.ask,
                "choice": ask.choice(results[ask]),
                "request_id": results[ask].request_id,
            }
            for ask in state.missing
        ]
        return Made(rows, [])

    def outcome(self, done: Done, rate: float | None) -> Chosen:
        """Counts of asks."""
        identity, rows = done.model.identity, [*done.state.kept, *done.made.rows]
        pairs = done.store.read("benchmark_pair", benchmark=self.benchmark)
        n_pairs = len(done.state.wanted)
        return Chosen(
            benchmark=self.benchmark,
            model=identity.model,
            model_key=identity.key,
            n_pairs=n_pairs,
            n_unnatural=pairs.num_rows - n_pairs,
            n_asks=len(rows),
            n_new=len(done.made.rows),
            n_neither=sum(row["choice"] is None for row in rows),
        )


def _job(request: Request) -> Job:
    def wanted_now(replies: Mapping[str, Reply]) -> list[Request]:
        return [] if request.request_id in replies else [request]

    return wanted_now


def ledger_name(benchmark: str, model_key: str) -> str:
    """``Build.benchmark`` of asking a served model about a benchmark.

    >>> ledger_name("winobias", "ab12")
    'choose/winobias/ab12'
    """
    return f"choose/{benchmark}/{model_key}"


def served(options: ChoiceOptions) -> Choosing:
    """The model that is asked, whom nobody asks yet."""
    return Choosing(options.model, "chat", options.token_limit)


def choose(
    store: Store,
    benchmark: str,
    options: ChoiceOptions,
    server: Server | None,
    run_id: str,
    tell: Tell | None = None,
) -> Chosen:
    """Ask for what is missing of a benchmark; without a ``server`` replies come from the ledger.

    Writes ``pair_choice``, ``model`` and, as ``Build.run``, ``generation_request``. Raises what
    ``PairChoices`` and ``Build.run`` raise; what was answered is kept.
    """
    check_imported(store, [benchmark])
    step, model = PairChoices(benchmark, options), served(options)
    ledger = ledger_name(benchmark, model.identity.key)
    build = Build(store, ledger, run_id, server, options.budget(), options.price(), tell)
    asked = replace(model, build=build)
    state = step.state(store, asked)
    results: dict[Ask, Reply] = {}
    for chunk in step.chunks(state.missing):
        results |= zip(chunk.items, step.compute(asked, chunk.items), strict=True)
    done = Done(store, asked, state, results, step.made(asked, state, results), run_id)
    with disk_problems(store.root):
        publish(step, done)
    chosen = step.outcome(done, None)
    if chosen.n_asks and chosen.n_neither == chosen.n_asks:
        problem = f"not one of {chosen.n_asks:,} replies on {benchmark} names a sentence"
        raise BadInput(f"model {chosen.model}", problem, _FIX)
    return chosen


def left_to_ask(store: Store, benchmark: str, options: ChoiceOptions) -> tuple[int, Spent, Spent]:
    """Questions left, the most they can cost, each answered at once, and what was spent before."""
    model, wordings, price = served(options), options.wordings(), options.price()
    held = look(store, ledger_name(benchmark, model.identity.key))
    missing = PairChoices(benchmark, options).state(store, model).missing
    requests = [ask.request(options, wordings) for ask in missing]
    left = [one for one in requests if one.request_id not in held.replies]
    return len(left), sum((most(one, price) for one in left), Spent()), held.spent


def preferences(store: Store, one: Chosen, setting: str) -> Iterator[str]:
    """What a model prefers, by groups, and how often it names what is shown first."""
    query = (
        "FROM forced_choice WHERE benchmark = $benchmark AND model_key = $model_key "
        "AND setting = $setting AND n_pairs > 0 ORDER BY groups"
    )
    which = {"benchmark": one.benchmark, "model_key": one.model_key, "setting": setting}
    for row in rows_of(store.root, query, which):
        group, _, other = row["groups"].partition("/")
        yield (
            f"{group} rather than {other} in {_percent(row, 'preference')} of choices, "
            f"the sentence shown first in {_percent(row, 'first_share')}"
        )


def _percent(row: Mapping[str, Any], name: str) -> str:
    value, low, high = (row[f"{name}{end}"] for end in ("", "_low", "_high"))
    ends = "no interval: too few words" if low is None else f"{100 * low:.1f} to {100 * high:.1f}"
    return f"{100 * value:.1f}% ({ends})"
