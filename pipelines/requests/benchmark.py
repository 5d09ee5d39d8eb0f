"""`plumbline benchmark build`: from seed words to judged pairs with MaxPMI, and a card."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from plumbline.eval_workers.chat.budget import money
from plumbline.eval_workers.chat.client import find_key
from plumbline.eval_workers.chat.ledger import look
from plumbline.eval_workers.chat.options import AskingOptions
from plumbline.eval_workers.chat.session import Build
from plumbline.eval_workers.chat.spending_bar import asking_bar, spending
from plumbline.eval_workers.generation import build as steps
from plumbline.eval_workers.generation import opinion as second
from plumbline.eval_workers.generation.build import Counts, check_name, spent, write_sentences
from plumbline.eval_workers.generation.card import Constraint, NothingKept, Written, write_card
from plumbline.eval_workers.generation.forecast import Remaining, forecast, remaining
from plumbline.eval_workers.generation.offline import SOURCE
from plumbline.eval_workers.generation.opinion import Opinion, check_model
from plumbline.eval_workers.generation.pairing import Paired
from plumbline.eval_workers.generation.prompts import differences, is_released
from plumbline.eval_workers.generation.spec import BuildSpec
from plumbline.eval_workers.generation.write import Progress
from plumbline.jobs.corpus_lookup import corpus_deltas
from plumbline.pipelines.stages import Stages
from plumbline.warehouse.errors import UsageProblem
from plumbline.warehouse.provenance.runs import recorded
from plumbline.warehouse.storage.store import Store
from plumbline.warehouse.text.output import say

Row = dict[str, Any]


@dataclass(frozen=True)
class BuildRequest:
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
        target = {"name": self.name, "replay": self.replay, "offline": self.offline}
        if self.offline:
            return {**target, **asdict(self.spec)}
        price, wordings = self.spec.price(), self.spec.writing().prompts.hash
        self.spec.judging().price()
        hashes = {"prompts_hash": wordings, "price": asdict(price) if price else None}
        return {**target, **asdict(self.spec), **hashes}


def checked_request(request: BuildRequest) -> tuple[str, ...]:
    """The seed words of a request, after a check of all that can be seen before anything is made.

    Raises ``UsageProblem`` or ``BadInput`` for a name, model, wording, price or corpus that won't
    do; of servers nothing is asked.
    """
    check_name(request.name)
    if request.replay and request.offline:
        raise UsageProblem("--replay and --offline", "contradict each other", "give one of them")
    request.config()
    store, spec = Store.existing(request.warehouse), request.spec
    words = steps.seed_words(store, spec)
    if spec.corpus:  # what the last step needs, before anything is paid for
        if store is None:
            problem = "needs a warehouse"
            raise UsageProblem(f"corpus {spec.corpus!r}", problem, "give --warehouse DIR")
        corpus_deltas(store, spec.corpus, spec.contrast)
    if spec.naturalness_model:
        check_model(spec.naturalness_model)
    return words


def check_key(request: BuildRequest) -> None:
    """Look for the server's key, where a server is going to be asked."""
    if not (request.offline or request.replay):
        for asked in (request.spec, request.spec.judging()):
            find_key(asked.base_url)


@dataclass(frozen=True)
class Built:
    """A benchmark that was built: its account, what went out with its card, a second opinion."""

    counts: Counts
    card: Written
    opinion: Opinion | None = None


def facts(
    request: BuildRequest, counts: Counts, opinion: Opinion | None = None
) -> dict[str, object]:
    """How the pairs were made, for the card."""
    return {**_making(request, counts), **(_opinion_facts(opinion) if opinion else {})}


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


def _making(request: BuildRequest, counts: Counts) -> dict[str, object]:
    spec = request.spec
    sample = f"the sample of {spec.corpus} ({spec.contrast}, seed {spec.seed})"
    words = "given" if spec.words else f"the first {counts.n_words:,} of {sample}"
    found: dict[str, object] = {"Seed words": words}
    if request.offline:
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
        "Words of a sentence": f"at most {spec.max_words} asked for; {_longer(spec)}",
        "Times a sentence was sent back, at most": spec.writing().n_revisions,
        "Sentences": fates,
        "Judged by": (spec.judge_model or spec.model) if spec.judge else "nobody",
    }


def _longer(spec: BuildSpec) -> str:
    if spec.reject_longer:
        return "longer sentences were rejected, which UnStereoEval did not do"
    return "longer sentences were kept, as in UnStereoEval"


def before(request: BuildRequest, words: Sequence[str], store: Store | None) -> Iterator[str]:
    """Lines of `--dry-run`: requests, tokens and money, from the start."""
    spec = request.spec
    n_pairs = 2 * spec.n_sentences * len(words)
    yield f"{request.name}: {len(words):,} words, {n_pairs:,} pairs at the most"
    if request.offline:
        yield "requests: none, the sentences are those of fixed frames"
        yield from _opinion_plan(spec)
        return
    yield from _wordings(spec)
    price = spec.price()
    judge_price = spec.judging().price()
    expected = forecast(words, spec.writing(), price, judge=spec.judge, judge_price=judge_price)
    yield f"requests: about {expected.n_requests:,}, at most {expected.n_requests_most:,}"
    yield f"tokens: about {expected.n_input_tokens:,} in, {expected.n_output_tokens:,} out"
    yield (
        f"cost: about {money(expected.cost, expected.currency)}"
        if expected.cost is not None and expected.currency is not None
        else "cost: unknown without --prices FILE"
    )
    held = look(store, request.name) if store is not None else None
    if held is not None and held.spent.n_requests:
        yield f"in the ledger already: {spending(held.spent, expected.currency)}"
        yield _left(remaining(words, spec.writing(), held.replies, judge=spec.judge), len(words))
    yield from _opinion_plan(spec)


def _wordings(spec: BuildSpec) -> Iterator[str]:
    """Which wordings are used and from which file, and how a build differs from a release's."""
    used = spec.writing().prompts
    yield f"wordings, hash {used.hash}:"
    yield from (f"  {role}: {source}" for role, source in used.sources)
    if is_released(spec.prompts):
        found = differences(Path(spec.prompts), vars(spec))
        yield f"differs from the release's files: {'; '.join(found) or 'in no setting'}"


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


def after(request: BuildRequest, built: Built, store: Store) -> Iterator[str]:
    """Closing lines of a build: its account, what was written, what to do next."""
    counts, spec = built.counts, request.spec
    yield f"{request.name}: {counts.n_pairs:,} pairs of {counts.n_words:,} words"
    if not request.offline:
        yield (
            f"sentences: {counts.n_in:,} read = {counts.n_kept:,} kept + "
            f"{counts.n_rejected:,} rejected + {counts.n_revised:,} revised"
        )
        yield f"kept: {counts.n_pairs:,} pairs + {counts.n_unpaired:,} that make no pair"
        currency = price.currency if (price := spec.price()) else None
        yield f"spent in all: {spending(spent(store, request.name), currency)}"
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
    if built.card.eta_nats is not None:
        yield f"|MaxPMI| <= {built.card.eta_nats:g} in {spec.corpus}: {built.card.n_pairs:,}"
    tables = ["benchmark_pair", *([] if request.offline else ["generation_request"])]
    tables += ["pair_score"] if built.opinion else []
    tables += ["reject"] if built.opinion or not request.offline else []
    tables += ["pair_association"] if spec.corpus else []
    yield f"Wrote {', '.join(tables)} in {request.warehouse}"
    for path in built.card.paths:
        yield f"Wrote {path}"
    if built.opinion:
        yield f"Warning: do not audit {built.opinion.model} with these pairs: it helped choose them"
    yield f"Next: plumbline score --model ID_OR_PATH --benchmark {request.name}"


def seed_words(request: BuildRequest) -> tuple[str, ...]:
    """The seed words of the corpus's sample, or those of the configuration."""
    return steps.seed_words(_store(request), request.spec)


def write(request: BuildRequest, run_id: str, words: Sequence[str]) -> list[Progress]:
    """Sentences for each word, by the model or the ledger."""
    with _build(request, run_id, "words") as build:
        return write_sentences(build, words, request.spec.writing())


def pair(request: BuildRequest, run_id: str, written: list[Progress]) -> Paired:
    """Each sentence with its counterpart of the other gender."""
    with _build(request, run_id, "conversions") as build:
        return steps.pair_sentences(build, written, request.spec)


def judge(request: BuildRequest, run_id: str, found: Paired) -> list[Row]:
    """Whether both sides of each pair read naturally."""
    with _build(request, run_id, "pairs", request.spec.judging()) as build:
        return steps.judge(build, found.pairs, request.spec)


def publish(request: BuildRequest, run_id: str, pairs: Sequence[Row], taken: Sequence[str]) -> None:
    """The pairs as rows of `benchmark_pair`."""
    steps.publish(Build(_store(request), request.name, run_id, None), pairs, taken)


def opinion(request: BuildRequest, run_id: str) -> second.Opinion:
    """Scores of the pairs, and those marked whose sides differ too much in them."""
    spec, build = request.spec, Build(_store(request), request.name, run_id, None)
    limit = spec.max_difference_nats_per_token
    return second.second_opinion(build, spec.naturalness_model, limit)


def constrain(request: BuildRequest) -> None:
    """MaxPMI of every pair against the corpus."""
    from plumbline.jobs.association.max_pmi import constrain as constrain_benchmark
    from plumbline.jobs.association.verdicts import verdict_lines

    spec, store = request.spec, _store(request)
    done = constrain_benchmark(store, spec.corpus, request.name, spec.contrast)
    for line in verdict_lines(store, spec.corpus, request.name, done):
        say(line)


def card(request: BuildRequest, counts: steps.Counts, found: second.Opinion | None) -> Written:
    """The dataset card, with the pairs as Parquet and JSON lines.

    Where too little text was counted to decide any pair, the card has them all, and their MaxPMI.
    """
    made, spec, store = facts(request, counts, found), request.spec, _store(request)
    within = Constraint(spec.corpus, spec.contrast, spec.eta) if spec.corpus else None
    try:
        return write_card(store, request.name, request.out, made=made, constraint=within)
    except NothingKept as e:
        say(f"{request.name}: {e.args[1]}, so its card has all pairs")
        every = Constraint(spec.corpus, spec.contrast)
        return write_card(store, request.name, request.out, made=made, constraint=every)


def benchmark(request: BuildRequest, stages: Stages) -> Built:
    """Build a benchmark from seed words."""
    with recorded(_store(request), "benchmark build", request.config()) as run_id:
        words = stages.run("seed words", seed_words, request)
        pairs, counts, taken = _pairs(request, run_id, words, stages)
        stages.run("publish", publish, request, run_id, pairs, taken)
        found = None
        if request.spec.naturalness_model:
            model = request.spec.naturalness_model
            found = stages.retried(f"opinion of {model}", opinion, request, run_id)
        if request.spec.corpus:
            stages.run(f"constrain by {request.spec.corpus}", constrain, request)
        exported = stages.run("card", card, request, counts, found)
    return Built(counts, exported, found)


def _pairs(
    request: BuildRequest, run_id: str, words: tuple[str, ...], stages: Stages
) -> tuple[list[Row], steps.Counts, list[str]]:
    """The pairs, their account, and the steps that were taken."""
    nothing = Paired((), ())
    if request.offline:
        offline = (_store(request), request.name, words, request.spec)
        rows = stages.run("write offline", steps.write_offline, *offline)
        return rows, steps.count(words, [], nothing, rows), []
    written = stages.run("write", write, request, run_id, words)
    found = stages.run("pair", pair, request, run_id, written)
    pairs, taken = list(found.pairs), ["write", "pair"]
    if request.spec.judge:
        pairs = stages.run("judge", judge, request, run_id, found)
        taken.append("judge")
    return pairs, steps.count(words, written, found, pairs), taken


@contextmanager
def _build(
    request: BuildRequest, run_id: str, kind: str, asked: AskingOptions | None = None
) -> Iterator[Build]:
    spec = asked or request.spec
    price, server = spec.price(), None if request.replay else spec.server()
    with asking_bar(kind, price.currency if price else None) as tell:
        yield Build(_store(request), request.name, run_id, server, spec.budget(), price, tell)


def _store(request: BuildRequest) -> Store:
    return Store.open(request.warehouse)
