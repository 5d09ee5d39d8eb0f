"""Sample continuations of the prompts in a set."""

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
    short_hash,
)
from plumbline.eval_workers.scoring.model_step import ModelStep, publish_instruction
from plumbline.warehouse.errors import UsageProblem
from plumbline.warehouse.input.input_rows import rejected
from plumbline.warehouse.steps.claimed_chunks import Chunk
from plumbline.warehouse.steps.step import ComputedStep, NewRows, Row, State, state_of

if TYPE_CHECKING:
    from plumbline.warehouse.storage.store import Store

#: Samples per chunk. A chunk takes a few forward passes on a CPU, and one pass on a GPU.
CHUNK_DRAWS = 250


@dataclass(frozen=True)
class Continuations(ModelStep):
    """Sample ``n`` continuations of each prompt in a set, and of each perturbed prompt.

    Reads ``probe_prompt``. Writes ``continuation``, ``sampling`` and ``instruction``. If a prompt
    has changed, its old rows are replaced. If an earlier run took more than ``n`` samples, all of
    them are kept. A prompt that can't be continued gets a row in ``reject``, which stays there
    until a later run succeeds.
    """

    probe_set: str
    sampling: SamplingOptions
    n: int

    table = "continuation"
    key = ("prompt_id", "side")
    order = ("prompt_id", "side", "sample")
    stage = "sample"
    verb = "sample"
    unit = "samples"
    result_type = Sample
    measures = (LOG_LIKELIHOOD, GIVEN_EMPTY)

    @property
    def label(self) -> str:
        return self.probe_set

    def check(self, store: Store) -> None:
        check_prompts(store, self.probe_set)

    def partition(self, model: Any) -> dict[str, str]:
        return {
            "model_key": model.identity.key,
            "probe_set": self.probe_set,
            "sampling_key": self.sampling.key,
        }

    def state(self, store: Store, model: Any) -> State:
        """Return the prompts to continue, the stored rows, and the samples that are missing."""
        prompts = store.read("probe_prompt", probe_set=self.probe_set).to_pylist()
        rows = store.read(self.table, **self.partition(model)).to_pylist()
        return self.state_of(prompts, rows, model.lead(self.sampling.instruction))

    def state_of(
        self, prompts: Sequence[Mapping[str, Any]], rows: Sequence[Row], lead: str
    ) -> State:
        """Return what ``state`` returns, but for the given prompts, rows and ``lead``."""
        state = state_of(sides_of(prompts, lead), rows, *self.key)
        return replace(state, missing=sorted({draw for _, draw in self._draws(state)}))

    def _draws(self, state: State) -> Iterator[tuple[Row, SeededPrompt]]:
        """Yield (row, sample) for each sample that isn't stored yet. The row has its prompt."""
        drawn = {(row["prompt_id"], row["side"], row["sample"]) for row in state.kept}
        for side in state.wanted:
            for k in range(self.n):
                if (side["prompt_id"], side["side"], k) not in drawn:
                    yield side, self.sampling.seeded(side["text"], k)

    def chunks(self, missing: Sequence[SeededPrompt]) -> Iterator[Chunk]:
        for start in range(0, len(missing), CHUNK_DRAWS):
            part = missing[start : start + CHUNK_DRAWS]
            yield Chunk(part, len(part))

    def compute(self, model: SamplingModel, items: Sequence[SeededPrompt]) -> list[Sample]:
        return model.continue_(items, self.sampling)

    def new_rows(self, model: Any, state: State, results: Mapping[SeededPrompt, Sample]) -> NewRows:
        """Return rows of ``continuation``, and a row of ``reject`` for each prompt that failed.

        If several samples of a prompt failed, the row of ``reject`` gives the first problem.
        """
        rows, rejects = list[Row](), dict[tuple[str, str], Row]()
        for side, draw in self._draws(state):
            sample = results[draw]
            if sample.problem:
                prompt_id, name = side["prompt_id"], side["side"]
                reason = f"prompt {prompt_id}, {name}: {sample.problem}"
                rejects.setdefault((prompt_id, name), rejected(side, reason, side["text"]))
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
        return NewRows(rows, list(rejects.values()))

    def publish_before(self, done: ComputedStep) -> None:
        super().publish_before(done)
        sampling = self.sampling
        if done.new.rows and sampling.key not in done.store.units("sampling"):
            publish_instruction(done.store, sampling.instruction, done.run_id)
            row = {"sampling_key": sampling.key, **sampling.row()}
            done.store.publish("sampling", [row], unit=sampling.key, run_id=done.run_id)


def sides_of(prompts: Iterable[Mapping[str, Any]], lead: str = "") -> list[Row]:
    """Return a row for each prompt, and a row for its perturbed version if there is one.

    Column ``text`` has the text to continue: ``lead``, then the prompt.

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
    return [{**side, "text_id": short_hash([side["text"]])} for side in sides]


def check_prompts(store: Store, probe_set: str) -> None:
    """Raise ``UsageProblem`` if the probe set isn't in the warehouse."""
    if not store.units("probe_prompt", probe_set=probe_set):
        fix = "make them with plumbline disclosure prompts or plumbline fairpair run"
        raise UsageProblem(f"prompts {probe_set!r}", "are not in the warehouse", fix)
