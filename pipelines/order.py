"""What `plumbline benchmark build` was asked for, and what it says before and after."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from plumbline.eval_workers.chat.bar import spending
from plumbline.eval_workers.chat.budget import money
from plumbline.eval_workers.chat.client import find_key
from plumbline.eval_workers.chat.ledger import look
from plumbline.eval_workers.generation.build import Counts, check_name, seed_words, spent
from plumbline.eval_workers.generation.card import Written
from plumbline.eval_workers.generation.estimate import Remaining, estimate, remaining
from plumbline.eval_workers.generation.offline import SOURCE
from plumbline.eval_workers.generation.opinion import Opinion, check_model
from plumbline.eval_workers.generation.spec import BuildSpec
from plumbline.jobs.corpus_lookup import corpus_deltas
from plumbline.warehouse.errors import UsageProblem
from plumbline.warehouse.storage.store import Store


@dataclass(frozen=True)
class Order:
    """A benchmark to build.

    Attributes:
        out: directory of its card.
        replay: replies come from the ledger alone.
        offline: our own grammar writes, nobody is asked.
    """

    name: str
    spec: BuildSpec
    warehouse: Path
    out: Path
    replay: bool = False
    offline: bool = False

    def config(self) -> dict[str, object]:
        """What is recorded of the run: every option, the wordings' hash and the price.

        Raises ``UsageProblem`` or ``BadInput`` for a spec that nothing can be written with.
        """
        said = {"name": self.name, "replay": self.replay, "offline": self.offline}
        if self.offline:
            return {**said, **asdict(self.spec)}
        price, wordings = self.spec.price(), self.spec.writing().prompts.hash
        asked = {"prompts_hash": wordings, "price": asdict(price) if price else None}
        return {**said, **asdict(self.spec), **asked}


def checked_order(order: Order) -> tuple[str, ...]:
    """The seed words of an order, after a check of all that can be seen before anything is made.

    Raises ``UsageProblem`` or ``BadInput`` for a name, model, wording, price or corpus that won't
    do; of servers nothing is asked.
    """
    check_name(order.name)
    if order.replay and order.offline:
        raise UsageProblem("--replay and --offline", "contradict each other", "give one of them")
    order.config()
    store, spec = held(order.warehouse), order.spec
    words = seed_words(store, spec)
    if spec.corpus:  # what the last step needs, before anything is paid for
        if store is None:
            problem = "there is no warehouse"
            raise UsageProblem(f"corpus {spec.corpus!r}", problem, "give --warehouse DIR")
        corpus_deltas(store, spec.corpus, spec.contrast)
    if spec.naturalness_model:
        check_model(spec.naturalness_model)
    return words


def check_key(order: Order) -> None:
    """Look for the server's key, where a server is going to be asked."""
    if not (order.offline or order.replay):
        find_key(order.spec.base_url)


def held(warehouse: Path) -> Store | None:
    """The warehouse, if there is one yet."""
    return Store.open(warehouse, create=False) if warehouse.exists() else None


@dataclass(frozen=True)
class Built:
    """A benchmark that was built: its account, what went out with its card, a second opinion."""

    counts: Counts
    card: Written
    opinion: Opinion | None = None


def facts(order: Order, counts: Counts, opinion: Opinion | None = None) -> dict[str, object]:
    """How the pairs were made, for the card."""
    return {**_making(order, counts), **(_opinion_facts(opinion) if opinion else {})}


def _opinion_facts(opinion: Opinion) -> dict[str, object]:
    """Whose opinion it was and what became of the pairs, with a warning against using it twice."""
    both = opinion.agreement
    found: dict[str, object] = {
        "Second opinion": f"by {opinion.model}, key {opinion.model_key}: the sides of a natural "
        f"pair differ by at most {opinion.limit:g} nats a token",
        "Pairs beyond that": f"{opinion.n_beyond:,}, of which {opinion.n_dropped:,} are left out "
        f"for that alone; {opinion.n_without:,} without a score keep the verdict they had",
    }
    if both:
        found["Judge and second opinion"] = (
            f"{both.n_both:,} pairs natural to both, {both.n_judge_only:,} to the judge only, "
            f"{both.n_model_only:,} to the model only, {both.n_neither:,} to neither"
        )
    why = "its own preference chose them, so they show too little of it"
    return {**found, "Do not audit with these pairs": f"{opinion.model} and its kin: {why}"}


def _making(order: Order, counts: Counts) -> dict[str, object]:
    spec = order.spec
    sample = f"the sample of {spec.corpus} ({spec.contrast}, seed {spec.seed})"
    words = "given" if spec.words else f"the first {counts.n_words:,} of {sample}"
    found: dict[str, object] = {"Seed words": words}
    if order.offline:
        grammar = f"{SOURCE}: fixed frames of Plumbline's own, no model; nobody judged them"
        return {**found, "Written by": grammar, "Seed of the frames": spec.seed}
    fates = (
        f"{counts.n_in:,} read, {counts.n_kept:,} kept, {counts.n_rejected:,} rejected, "
        f"{counts.n_revised:,} revised"
    )
    return {
        **found,
        "Written by": f"{spec.model}, at temperature {spec.temperature:g}",
        "Wordings (hash)": spec.writing().prompts.hash,
        "Words of a sentence, at most": spec.max_words,
        "Sentences": fates,
        "Judged by": spec.model if spec.judge else "nobody",
    }


def before(order: Order, words: Sequence[str], store: Store | None) -> Iterator[str]:
    """Lines of `--dry-run`: requests, tokens and money, from the start."""
    spec = order.spec
    n_pairs = 2 * spec.n_sentences * len(words)
    yield f"{order.name}: {len(words):,} words, {n_pairs:,} pairs at the most"
    if order.offline:
        yield "requests: none, the sentences are those of fixed frames"
        yield from _opinion_plan(spec)
        return
    price = spec.price()
    told = estimate(words, spec.writing(), price, judge=spec.judge)
    yield f"requests: about {told.n_requests:,}, at most {told.n_requests_most:,}"
    yield f"tokens: about {told.n_input_tokens:,} in, {told.n_output_tokens:,} out"
    yield (
        f"cost: about {money(told.cost, told.currency)}"
        if told.cost is not None and told.currency is not None
        else "cost: unknown without --prices FILE"
    )
    held = look(store, order.name) if store is not None else None
    if held is not None and held.spent.n_requests:
        yield f"in the ledger already: {spending(held.spent, told.currency)}"
        yield _left(remaining(words, spec.writing(), held.replies, judge=spec.judge), len(words))
    yield from _opinion_plan(spec)


def _left(left: Remaining, n_words: int) -> str:
    if left.is_known:
        more = f"{left.n_requests:,} requests, and one more for each unclear answer"
        return f"left: {more if left.n_requests else 'nothing'}"
    written = f"{left.n_written:,} of {n_words:,} words are written"
    return f"left: about {left.n_requests:,} requests; {written}"


def _opinion_plan(spec: BuildSpec) -> Iterator[str]:
    if spec.naturalness_model:
        yield (
            f"second opinion: {spec.naturalness_model} would score the pairs; those that differ by "
            f"more than {spec.max_difference_nats_per_token:g} nats a token count as unnatural"
        )


def after(order: Order, built: Built, store: Store) -> Iterator[str]:
    """Closing lines of a build: its account, what was written, what to do next."""
    counts, spec = built.counts, order.spec
    yield f"{order.name}: {counts.n_pairs:,} pairs of {counts.n_words:,} words"
    if not order.offline:
        yield (
            f"sentences: {counts.n_in:,} read = {counts.n_kept:,} kept + "
            f"{counts.n_rejected:,} rejected + {counts.n_revised:,} revised"
        )
        yield f"kept: {counts.n_pairs:,} pairs + {counts.n_unpaired:,} that make no pair"
        currency = price.currency if (price := spec.price()) else None
        yield f"spent in all: {spending(spent(store, order.name), currency)}"
    if counts.n_natural is not None:
        yield f"natural: {counts.n_natural:,}"
    if opinion := built.opinion:
        yield (
            f"second opinion of {opinion.model}: {opinion.n_beyond:,} pairs differ by more than "
            f"{opinion.limit:g} nats a token, {opinion.n_dropped:,} of them left out for that alone"
        )
        if opinion.n_without:
            yield f"without a score: {opinion.n_without:,} pairs, which keep the verdict they had"
        yield f"left: {opinion.n_left:,} pairs"
    if spec.corpus:
        yield f"|MaxPMI| <= {spec.eta:g} in {spec.corpus}: {built.card.n_pairs:,}"
    tables = ["benchmark_pair", *([] if order.offline else ["generation_request"])]
    tables += ["pair_score"] if built.opinion else []
    tables += ["reject"] if built.opinion or not order.offline else []
    tables += ["pair_association"] if spec.corpus else []
    yield f"Wrote {', '.join(tables)} in {order.warehouse}"
    for path in built.card.paths:
        yield f"Wrote {path}"
    if built.opinion:
        yield f"Warning: do not audit {built.opinion.model} with these pairs: it helped choose them"
    yield f"Next: plumbline score --model ID_OR_PATH --benchmark {order.name}"
