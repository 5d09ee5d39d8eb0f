"""Sampled continuations of a prompt set."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from plumbline.eval_workers.models.sampling_contract import (
    Sample,
    SamplingModel,
    SamplingOptions,
    SeededPrompt,
)
from plumbline.eval_workers.models.scoring_contract import (
    GIVEN_EMPTY,
    LOG_LIKELIHOOD,
    texts_hash,
)
from plumbline.eval_workers.scoring.model_step import ModelStep, publish_instruction
from plumbline.warehouse.errors import UsageProblem
from plumbline.warehouse.input.input_rows import rejected
from plumbline.warehouse.steps.step import Chunk, ComputedStep, NewRows, Row, State, state_of

if TYPE_CHECKING:
    from plumbline.eval_workers.models.model_options import ModelOptions
    from plumbline.warehouse.storage.store import Store

#: Samples per chunk. On a CPU a chunk takes a few forward passes, on a GPU one.
CHUNK_DRAWS = 250


@dataclass(frozen=True)
class SampleCounts:
    """The outcome for one set, where ``n_texts = n_continued + n_rejected``.

    A text is one side of a prompt. A text with a sample counts as continued, any other as rejected.
    ``n_new`` of the ``n_samples`` rows are from this run. ``n_alike`` texts have several samples
    that are nearly all the same; see ``alike``. ``samples_per_s`` is the speed of this run after
    the weights were loaded; it is ``None`` if no sample was drawn.
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
class Continuations(ModelStep[SampleCounts]):
    """The step that draws the missing samples of a set, up to ``n`` for each side of a prompt.

    Reads ``probe_prompt``; writes ``continuation``, ``sampling`` and ``instruction``. If a prompt
    has changed, it is continued again and its old rows are removed. Rows beyond ``n`` are kept. A
    prompt that can't be continued gets a row in ``reject``, and the next run tries it again.
    """

    probe_set: str
    sampling: SamplingOptions
    n: int

    table = "continuation"
    order = ("prompt_id", "side", "sample")
    stage = "sample"
    verb = "sample"
    unit = "samples"
    result_type = Sample
    measures = (LOG_LIKELIHOOD, GIVEN_EMPTY)

    @property
    def label(self) -> str:
        return f"{self.probe_set}, {self.sampling.label}"

    def check(self, store: Store, options: ModelOptions) -> None:
        check_n(self.n, self.sampling)
        check_prompts(store, self.probe_set)

    def partition(self, model: Any) -> dict[str, str]:
        return {
            "model_key": model.identity.key,
            "probe_set": self.probe_set,
            "sampling_key": self.sampling.key,
        }

    def state(self, store: Store, model: Any) -> State:
        """Return the prompts' sides as sent, their existing rows, and the distinct draws to do."""
        prompts = store.read("probe_prompt", probe_set=self.probe_set).to_pylist()
        rows = store.read(self.table, **self.partition(model)).to_pylist()
        return self.state_of(prompts, rows, model.lead(self.sampling.instruction))

    def state_of(
        self, prompts: Sequence[Mapping[str, Any]], rows: Sequence[Row], lead: str
    ) -> State:
        """Return ``state`` for these prompts, existing rows and text before each prompt."""
        state = state_of(sides_of(prompts, lead), rows, "prompt_id", "side")
        return replace(state, missing=sorted({draw for _, draw in self._draws(state)}))

    def _draws(self, state: State) -> Iterator[tuple[Row, SeededPrompt]]:
        """Yield (side, draw) for each draw without a row; it continues that side of the prompt."""
        drawn = {(row["prompt_id"], row["side"], row["sample"]) for row in state.kept}
        for side in state.wanted:
            for k in range(self.n):
                if (side["prompt_id"], side["side"], k) not in drawn:
                    yield side, self.sampling.seeded(side["text"], k)

    def chunks(self, missing: Sequence[SeededPrompt]) -> Iterator[Chunk]:
        """Yield chunks of draws in the given order, so draws of one text stay together."""
        for start in range(0, len(missing), CHUNK_DRAWS):
            part = missing[start : start + CHUNK_DRAWS]
            yield Chunk(part, len(part))

    def compute(self, model: SamplingModel, items: Sequence[SeededPrompt]) -> list[Sample]:
        return model.continue_(items, self.sampling)

    def new_rows(self, model: Any, state: State, results: Mapping[SeededPrompt, Sample]) -> NewRows:
        """Return new rows of ``continuation``, and one row of ``reject`` per side and reason."""
        rows: list[Row] = []
        refused: dict[tuple[str, str, str], list[Row]] = {}
        for side, draw in self._draws(state):
            sample = results[draw]
            if sample.problem:
                of = (side["prompt_id"], side["side"], sample.problem)
                refused.setdefault(of, []).append(side)
                continue
            rows.append(
                {
                    "model": model.identity.model,
                    "prompt_id": side["prompt_id"],
                    "side": side["side"],
                    "sample": draw.sample,
                    "seed": draw.seed,
                    "text_id": draw.text_id,
                    "continuation": sample.text,
                    "n_tokens": sample.n_tokens,
                    "finish": sample.finish,
                }
            )
        rejects = []
        for (prompt_id, name, problem), sides in refused.items():
            samples = "1 sample" if len(sides) == 1 else f"{len(sides)} samples"
            reason = f"prompt {prompt_id}, {name}, {samples}: {problem}"
            rejects.append(rejected(sides[0], reason, sides[0]["text"]))
        return NewRows(rows, rejects)

    def publish_before(self, done: ComputedStep) -> None:
        """Also publish the sampling options and the instruction."""
        super().publish_before(done)
        sampling = self.sampling
        if done.new.rows and sampling.key not in done.store.units("sampling"):
            publish_instruction(done.store, sampling.instruction, done.run_id)
            row = {"sampling_key": sampling.key, **sampling.row(), "run_id": done.run_id}
            done.store.publish("sampling", [row], unit=sampling.key, run_id=done.run_id)

    def outcome(self, done: ComputedStep, rate: float | None) -> SampleCounts:
        identity, texts = done.resource.identity, dict[tuple[str, str], list[str]]()
        rows = (*done.state.kept, *done.new.rows)
        for row in rows:
            texts.setdefault((row["prompt_id"], row["side"]), []).append(row["continuation"])
        n_texts, n_new = len(done.state.wanted), len(done.new.rows)
        return SampleCounts(
            probe_set=self.probe_set,
            model=identity.model,
            model_key=identity.key,
            sampling_key=self.sampling.key,
            n_texts=n_texts,
            n_continued=len(texts),
            n_rejected=n_texts - len(texts),
            n_samples=len(rows),
            n_new=n_new,
            n_alike=sum(map(alike, texts.values())),
            samples_per_s=rate if n_new else None,
        )


def sides_of(prompts: Iterable[Mapping[str, Any]], lead: str = "") -> list[Row]:
    """Return a row for each prompt and for each perturbed prompt (if any), with the text as sent.

    >>> prompt = {"prompt_id": "1", "prompt": "John is", "perturbed_prompt": "Jane is"}
    >>> [(row["side"], row["text"]) for row in sides_of([prompt], "So ")]
    [('original', 'So John is'), ('perturbed', 'So Jane is')]
    """
    sides = [
        {**prompt, "side": side, "text": f"{lead}{prompt[column]}"}
        for prompt in prompts
        for side, column in (("original", "prompt"), ("perturbed", "perturbed_prompt"))
        if prompt[column] is not None
    ]
    return [{**side, "text_id": texts_hash([side["text"]])} for side in sides]


def check_prompts(store: Store, probe_set: str) -> None:
    """Raise ``UsageProblem`` if the warehouse has no prompts of the set."""
    if not store.units("probe_prompt", probe_set=probe_set):
        fix = "plumbline disclosure prompts and plumbline fairpair run make them"
        raise UsageProblem(f"prompts {probe_set!r}", "are not in the warehouse", fix)


def check_n(n: int, options: SamplingOptions) -> None:
    """Raise ``UsageProblem`` for a number of samples that can't be drawn.

    >>> check_n(2, SamplingOptions(greedy=True))
    Traceback (most recent call last):
    ...
    plumbline.warehouse.errors.UsageProblem: 2 samples: greedy decoding repeats one sample \
(ask for 1)
    """
    if n < 1:
        raise UsageProblem(f"{n} samples", "has to be 1 or more")
    if options.greedy and n > 1:
        raise UsageProblem(f"{n} samples", "greedy decoding repeats one sample", "ask for 1")


def alike(samples: Sequence[str]) -> bool:
    """Return True if there are several samples, and all or nearly all of them are the same.

    Nearly all are the same if there is at most one distinct text per ten samples.

    >>> alike(["is"] * 9 + ["was"]), alike(["is"] * 19 + ["was"]), alike(["is"])
    (False, True, False)
    """
    return len(samples) > 1 and len(set(samples)) <= max(1, len(samples) // 10)
