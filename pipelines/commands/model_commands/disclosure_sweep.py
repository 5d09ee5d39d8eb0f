"""`plumbline disclosure sweep`: compare decoding settings, or instructions, on prompts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Annotated, Any, Literal

from pydantic import Field

from plumbline.eval_workers.disclosure.set_probing import (
    ProbeOptions,
    decodings,
    load_instructions,
    measure_sets,
)
from plumbline.eval_workers.disclosure.word_probabilities import (
    load_words,
    publish_words,
)
from plumbline.eval_workers.models.model_options import ModelOptions
from plumbline.eval_workers.models.sampling_contract import SamplingOptions
from plumbline.eval_workers.models.scoring_contract import NONE, Instruction
from plumbline.eval_workers.scoring.continuations import Continuations
from plumbline.eval_workers.scoring.model_step import run_on_model
from plumbline.pipelines.command.base import Command, Context, Done, On
from plumbline.pipelines.command.fields import InputFile
from plumbline.warehouse.errors import UsageProblem
from plumbline.warehouse.options import Seed, part
from plumbline.warehouse.query.connection import rows_of


class Sweep(ProbeOptions, ModelOptions, Command):
    """Measure a model on a set of prompts with different decoding settings or instructions.

    --by decoding changes one setting at a time and turns the others off. It compares only GAS,
    because decoding doesn't affect GLD and ADD. --by instruction compares GAS, GLD and ADD with and
    without each instruction. After an interruption, run the same command again to resume.

    Example: plumbline disclosure sweep topics --model EleutherAI/pythia-70m --by decoding
    """

    reads = "probe_prompt"
    without = (
        *("smoothing", "batch_tokens", "bos", "backend"),
        *("concurrency", "tensor_parallel", "base_url"),
    )

    probe_set: Annotated[
        str, Field(description="Name of an imported prompt set."), On(positional=True)
    ]
    model: Annotated[str, Field(min_length=1, description="Model: Hugging Face id, or directory.")]
    by: Annotated[Literal["decoding", "instruction"], Field(description="What to compare.")]
    temperature: Annotated[tuple[str, ...], Field(description="Temperatures, comma-separated.")] = (
        *("0.3", "0.5", "0.7", "1"),
    )
    top_p: Annotated[
        tuple[str, ...], Field(description="Top-p values, comma-separated; 0 is greedy decoding.")
    ] = ("0.3", "0.5", "0.7", "1")
    top_k: Annotated[tuple[str, ...], Field(description="Top-k values, comma-separated.")] = (
        *("10", "50", "100", "150", "200"),
    )
    n: Annotated[int, Field(ge=1, le=10_000, description="Samples per prompt and setting.")] = 1
    seed: Annotated[Seed, Field(description="Random seed of the samples.")] = 0
    instructions: Annotated[
        InputFile | None, Field(description="TOML file of instructions; default: a built-in list.")
    ] = None
    form: Annotated[
        tuple[str, ...], Field(description="Form of the instructions: prefix, chat or prefix,chat.")
    ] = ("prefix",)

    def __post_init__(self) -> None:
        other, names = "instruction", ["instructions", "form"]
        if self.by == other:
            other, names = "decoding", ["temperature", "top_p", "top_k", "n", "seed"]
        for name in names:
            if (value := getattr(self, name)) != getattr(type(self), name):
                shown = ",".join(value) if isinstance(value, tuple) else value
                option = f"--{name.replace('_', '-')} {shown}"
                raise UsageProblem(option, f"is for --by {other}", "leave it out")

    def decodings(self) -> list[SamplingOptions]:
        """Return the decoding settings to compare. Raises ``UsageProblem`` for bad values."""
        temperatures = _numbers("--temperature", self.temperature, float)
        top_ps = _numbers("--top-p", self.top_p, float)
        top_ks = _numbers("--top-k", self.top_k, int)
        return decodings(temperatures, top_ps, top_ks, self.max_new_tokens, self.seed)

    def variants(self) -> list[Instruction]:
        """Return the instructions to compare: first none, then each instruction in each form."""
        texts = load_instructions(self.instructions)
        return [NONE, *(Instruction(text, form) for form in self.form for text in texts)]

    def run(self, context: Context) -> Done:
        by_decoding = self.by == "decoding"
        return self._by_decoding(context) if by_decoding else self._by_instruction(context)

    def _by_decoding(self, context: Context) -> Done:
        store = context.store
        words = load_words(store, self.word_list)
        steps = [
            Continuations(self.probe_set, way, 1 if way.greedy else self.n)
            for way in self.decodings()
        ]
        done = run_on_model(store, self.model, part(ModelOptions, self), steps, context.run_id)
        publish_words(store, words, context.run_id)
        key, keys = done[0].model_key, [one.partition["sampling_key"] for one in done]
        params = self._params(key, words.name) | {"keys": keys}
        rows = rows_of(store.root, _DECODINGS, params)
        drawn = {r["sampling_key"]: r["is_best"] for r in rows if r["parameter"] != "greedy"}
        n_new, n_settings = sum(one.n_new for one in done), len(done)
        said = [f"{n_new:,} prompts with new continuations, summed over {n_settings} settings"]
        if 1 < sum(drawn.values()) == len(drawn):
            said.append("All settings that sample have the same GAS: none is marked as best.")
            rows = [{**row, "is_best": False} for row in rows]
        return Done(
            rows=[{name: row[name] for name in _OF_DECODING} for row in rows],
            said=said,
            next="plumbline report",
            query=_DECODINGS,
            params=params,
        )

    def _by_instruction(self, context: Context) -> Done:
        store, variants = context.store, self.variants()
        done = measure_sets(
            *(store, [self.probe_set], self.model, part(ModelOptions, self), context.run_id),
            word_list=self.word_list,
            instructions=variants,
            max_new_tokens=self.max_new_tokens,
        )
        probed = done[0][0].partition
        params = self._params(probed["model_key"], probed["word_list"])
        params |= {"keys": [one.key for one in variants], "n": self.max_new_tokens}
        rows = rows_of(store.root, _INSTRUCTIONS, params)
        return Done(
            rows=[{name: row[name] for name in _OF_INSTRUCTION} for row in rows],
            next="plumbline report",
            query=_INSTRUCTIONS,
            params=params,
        )

    def _params(self, model_key: str, words: str) -> dict[str, object]:
        return {"probe_set": self.probe_set, "model_key": model_key, "word_list": words}


_OF_SET = "probe_set = $probe_set AND model_key = $model_key AND word_list = $word_list"
_DECODINGS = f"""FROM decoding_sweep
WHERE {_OF_SET} AND instruction_key = 'none' AND list_contains($keys, sampling_key)
ORDER BY list_position(['greedy', 'temperature', 'top_p', 'top_k'], parameter), setting"""
_OF_DECODING = (
    *("parameter", "setting", "gas", "gas_low", "gas_high"),
    *("gas_f_of_all", "gas_m_of_all", "is_best", "n_empty"),
)
_INSTRUCTIONS = f"""FROM instruction_sweep()
WHERE {_OF_SET} AND list_contains($keys, instruction_key)
    AND (max_new_tokens IS NULL OR max_new_tokens = $n)
ORDER BY list_position($keys, instruction_key), measure"""
_OF_INSTRUCTION = (
    *("form", "instruction", "measure", "figure", "figure_low", "figure_high"),
    *("change", "change_low", "change_high"),
)


def _numbers(option: str, texts: Sequence[str], kind: Callable[[str], Any]) -> list[Any]:
    try:
        return [kind(text) for text in texts]
    except ValueError:
        expected = f"expected {'whole numbers' if kind is int else 'numbers'}, comma-separated"
        raise UsageProblem(f"{option} {','.join(texts)}", expected) from None
