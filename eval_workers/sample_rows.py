"""What a set of prompts wants drawn, and rows of ``continuation`` and ``reject`` from samples."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from plumbline.eval_workers.backends.sampling import Draw, Sample, SamplingOptions
from plumbline.eval_workers.rejects import reject_row
from plumbline.warehouse.errors import UsageProblem

if TYPE_CHECKING:
    from plumbline.warehouse.storage.store import Store

Row = dict[str, Any]


@dataclass(frozen=True)
class Sampled:
    """Outcome for one set: ``n_texts = n_continued + n_rejected``.

    A text is a side of a prompt; it is continued if it has a sample, rejected if it has none.
    ``n_samples`` rows are there, ``n_new`` of them from this run. ``n_alike`` texts have several
    samples and hardly any different ones, see ``alike``. ``samples_per_s`` is how fast this run
    drew, once the weights were loaded; ``None`` when it drew nothing.
    """

    probe_set: str
    model: str
    model_key: str
    sampling_key: str
    n_texts: int
    n_continued: int
    n_rejected: int
    n_samples: int
    n_new: int
    n_alike: int
    samples_per_s: float | None = None


@dataclass(frozen=True)
class Wanted:
    """The sides of a set's prompts, the rows of ``continuation`` that hold, and what is missing.

    Attributes:
        sides: prompt rows with their ``side`` and the ``text`` as sent.
        missing: draws that no row has, each once.
    """

    sides: Sequence[Row]
    found: Sequence[Row]
    kept: Sequence[Row]
    missing: Sequence[Draw]


def sides_of(prompts: Iterable[Mapping[str, Any]], lead: str = "") -> list[Row]:
    """Each prompt, and its counterpart where it has one, as they are sent: behind ``lead``.

    >>> prompt = {"prompt_id": "1", "prompt": "John is", "perturbed_prompt": "Jane is"}
    >>> [(row["side"], row["text"]) for row in sides_of([prompt], "So ")]
    [('original', 'So John is'), ('perturbed', 'So Jane is')]
    """
    return [
        {**prompt, "side": side, "text": f"{lead}{prompt[column]}"}
        for prompt in prompts
        for side, column in (("original", "prompt"), ("perturbed", "perturbed_prompt"))
        if prompt[column] is not None
    ]


def wanted(
    store: Store, probe_set: str, model_key: str, options: SamplingOptions, n: int, lead: str
) -> Wanted:
    """What the warehouse has and lacks of ``n`` samples of each side of a set's prompts.

    ``lead`` goes before each prompt, see ``Model.lead``. More samples than ``n`` stay; those of
    another prompt text do not. Raises ``UsageProblem`` for a
    set that is not in the warehouse, and for an ``n`` that makes no sense.
    """
    check_n(n, options)
    prompts = store.read("probe_prompt", probe_set=probe_set).to_pylist()
    if not prompts:
        fix = "plumbline disclosure prompts and plumbline fairpair run make them"
        raise UsageProblem(f"prompts {probe_set!r}", "are not in the warehouse", fix)
    partition = {"probe_set": probe_set, "model_key": model_key, "sampling_key": options.key}
    found = store.read("continuation", **partition).to_pylist()
    return state_of(prompts, found, options, n, lead)


def state_of(
    prompts: Sequence[Mapping[str, Any]],
    found: Sequence[Row],
    options: SamplingOptions,
    n: int,
    lead: str,
) -> Wanted:
    """``wanted``, given the prompts and the rows that there are.

    >>> prompt = {"prompt_id": "1", "prompt": "John is", "perturbed_prompt": "Jane is"}
    >>> len(state_of([prompt], [], SamplingOptions(), 5, "").missing)
    10
    """
    sides = sides_of(prompts, lead)
    first = {(s["prompt_id"], s["side"]): options.draw(s["text"], 0) for s in sides}
    kept = [
        row
        for row in found
        if (draw := first.get((row["prompt_id"], row["side"]))) and draw.text_id == row["text_id"]
    ]
    have = {(row["prompt_id"], row["side"], row["sample"]) for row in kept}
    missing = {
        options.draw(side["text"], k)
        for side in sides
        for k in range(n)
        if (side["prompt_id"], side["side"], k) not in have
    }
    return Wanted(sides, found, kept, sorted(missing))


def check_n(n: int, options: SamplingOptions) -> None:
    """Raise ``UsageProblem`` for a number of samples that can't be drawn.

    >>> check_n(2, SamplingOptions(greedy=True))
    Traceback (most recent call last):
    ...
    plumbline.warehouse.errors.UsageProblem: 2 samples: greedy decoding gives one and the same \
(ask for 1)
    """
    if n < 1:
        raise UsageProblem(f"{n} samples", "has to be 1 or more")
    if options.greedy and n > 1:
        raise UsageProblem(f"{n} samples", "greedy decoding gives one and the same", "ask for 1")


def sample_rows(
    state: Wanted, samples: Mapping[Draw, Sample], identity: Mapping[str, Any], run_id: str
) -> tuple[list[Row], list[Row]]:
    """New rows of ``continuation``, and of ``reject``: one for each side and reason.

    ``identity`` holds the columns that all rows share. What ``samples`` has no entry for is left.
    """
    have = {(row["prompt_id"], row["side"], row["sample"]) for row in state.kept}
    by_text: dict[str, list[Draw]] = {}
    for draw in state.missing:
        by_text.setdefault(draw.text, []).append(draw)
    new, rejects = [], []
    for side in state.sides:
        problems: Counter[str] = Counter()
        for draw in by_text.get(side["text"], ()):
            sample = samples.get(draw)
            if sample is None or (side["prompt_id"], side["side"], draw.sample) in have:
                continue
            if sample.problem:
                problems[sample.problem] += 1
                continue
            new.append({**identity, **_columns(side, draw, sample), "run_id": run_id})
        rejects += [_reject(side, why, k, identity, run_id) for why, k in problems.items()]
    return new, rejects


def _columns(side: Row, draw: Draw, sample: Sample) -> Row:
    return {
        "prompt_id": side["prompt_id"],
        "side": side["side"],
        "sample": draw.sample,
        "seed": draw.seed,
        "text_id": draw.text_id,
        "continuation": sample.text,
        "n_tokens": sample.n_tokens,
        "finish": sample.finish,
    }


def _reject(side: Row, problem: str, n: int, identity: Mapping[str, Any], run_id: str) -> Row:
    samples = "1 sample" if n == 1 else f"{n} samples"
    row = reject_row(
        stage="sample",
        subject=reject_subject(identity),
        source_file=side["source_file"],
        source_row=side["source_row"],
        reason=f"prompt {side['prompt_id']}, {side['side']}, {samples}: {problem}",
        excerpt=side["text"],
    )
    return {**row, "run_id": run_id}


def reject_subject(identity: Mapping[str, Any]) -> str:
    """The subject of ``reject`` rows of a set under a model and a way to decode."""
    return f"{identity['model_key']}/{identity['probe_set']}/{identity['sampling_key']}"


def alike(samples: Sequence[str]) -> bool:
    """Whether several samples are hardly different: at most one different text in ten of them.

    >>> alike(["is"] * 9 + ["was"]), alike(["is"] * 19 + ["was"]), alike(["is"])
    (False, True, False)
    """
    return len(samples) > 1 and len(set(samples)) <= max(1, len(samples) // 10)


def outcome(
    state: Wanted,
    new: Sequence[Row],
    identity: Mapping[str, Any],
    rate: float | None,
) -> Sampled:
    """The counts of rows as they are after publishing."""
    texts: dict[tuple[str, str], list[str]] = {}
    for row in (*state.kept, *new):
        texts.setdefault((row["prompt_id"], row["side"]), []).append(row["continuation"])
    n_texts = len(state.sides)
    return Sampled(
        probe_set=identity["probe_set"],
        model=identity["model"],
        model_key=identity["model_key"],
        sampling_key=identity["sampling_key"],
        n_texts=n_texts,
        n_continued=len(texts),
        n_rejected=n_texts - len(texts),
        n_samples=len(state.kept) + len(new),
        n_new=len(new),
        n_alike=sum(map(alike, texts.values())),
        samples_per_s=rate,
    )
