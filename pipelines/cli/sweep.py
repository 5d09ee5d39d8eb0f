"""The command ``plumbline disclosure sweep``: other ways to decode, or instructions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from plumbline.eval_workers.disclosure.attributes import WORD_LIST
from plumbline.pipelines.cli.options import Loading, Warehouse, WordListName, expanded
from plumbline.pipelines.requests import DEFAULT_WAREHOUSE
from plumbline.warehouse.errors import UsageProblem
from plumbline.warehouse.text.output import say

if TYPE_CHECKING:
    from plumbline.eval_workers.backends.continuer import Continuer
    from plumbline.eval_workers.backends.instruction import Instruction
    from plumbline.eval_workers.disclosure.sweep import Grid
    from plumbline.warehouse.storage.store import Store
    from plumbline.warehouse.wordlists import WordList

Row = dict[str, Any]
_BY = ("decoding", "instruction")


@expanded
def sweep(
    probe_set: Annotated[str, typer.Argument(help="Set of prompts in the warehouse.")],
    model: Annotated[str, typer.Option(help="Hub id, or directory of a saved model.")],
    by: Annotated[str, typer.Option(help="decoding or instruction.")],
    word_list: WordListName = WORD_LIST,
    temperature: Annotated[
        str | None, typer.Option(help="Temperatures, by commas: 0.3,0.5,0.7,1.")
    ] = None,
    top_p: Annotated[str | None, typer.Option(help="Nuclei, by commas: 0.3,0.5,0.7,1.")] = None,
    top_k: Annotated[
        str | None, typer.Option(help="Numbers of tokens, by commas: 10,50,100,150,200.")
    ] = None,
    n: Annotated[int | None, typer.Option("--n", help="Samples a prompt and value: 1.")] = None,
    seed: Annotated[int | None, typer.Option(help="Seed of the samples: 0.")] = None,
    instructions: Annotated[
        Path | None, typer.Option(help="List of instructions: .toml, .jsonl or .txt.")
    ] = None,
    form: Annotated[
        str | None, typer.Option(help="prefix (the default), chat, or both by a comma.")
    ] = None,
    max_new_tokens: Annotated[int, typer.Option(help="Tokens of a continuation.")] = 50,
    *,
    loading: Loading,
    out: Annotated[Path, typer.Option(help="Directory of the plot.")] = Path("out/report"),
    warehouse: Warehouse = DEFAULT_WAREHOUSE,
) -> None:
    """Measure a set under many ways to decode, or under many instructions, beside none.

    By decoding one value is varied at a time, the others off, and GAS alone can differ. By
    instruction GAS, GLD and ADD are compared with those without one. Finished work is kept: after
    an interruption run the same command again to resume.

    Example: plumbline disclosure sweep topics --model EleutherAI/pythia-70m --by decoding
    """
    from plumbline.eval_workers.disclosure.word_probabilities import Probe, load_words
    from plumbline.eval_workers.work.runner import opened
    from plumbline.warehouse.provenance.runs import recorded
    from plumbline.warehouse.storage.store import Store

    _check_by(
        by,
        decoding={"--temperature": temperature, "--top-p": top_p, "--top-k": top_k}
        | {"--n": n, "--seed": seed},
        instruction={"--instructions": instructions, "--form": form},
    )
    grid = _grid(temperature, top_p, top_k, n, seed, max_new_tokens) if by == _BY[0] else None
    variants = _variants(instructions, form) if grid is None else []
    store = Store.open(warehouse, create=False)
    words = load_words(store, word_list)
    Probe(probe_set, words).check(store, loading)
    options: dict[str, object] = {
        "probe_set": probe_set,
        "model": model,
        "by": by,
        "word_list": words.name,
    }
    options |= {"grid": str(grid), "instructions": [str(one) for one in variants]}
    with opened(store, model, loading) as ready:
        for one in variants:
            ready.lead(one)
        with recorded(store, "disclosure sweep", options) as run_id:
            if grid is not None:
                lines = _by_decoding(store, ready, probe_set, words, grid, run_id, out)
            else:
                lines = _by_instruction(
                    store, ready, probe_set, words, variants, max_new_tokens, run_id, out
                )
            for line in lines:
                say(line)


def _check_by(by: str, decoding: dict[str, object], instruction: dict[str, object]) -> None:
    if by not in _BY:
        raise UsageProblem(f"--by {by}", f"is not one of {', '.join(_BY)}")
    for name, value in (instruction if by == _BY[0] else decoding).items():
        if value is not None:
            other = _BY[1] if by == _BY[0] else _BY[0]
            raise UsageProblem(f"{name} {value}", f"is for --by {other}", "leave it out")


def _grid(
    temperature: str | None,
    top_p: str | None,
    top_k: str | None,
    n: int | None,
    seed: int | None,
    max_new_tokens: int,
) -> Grid:
    from plumbline.eval_workers.disclosure.sweep import Grid

    usual = Grid()
    return Grid(
        usual.temperatures if temperature is None else _numbers("--temperature", temperature),
        usual.top_ps if top_p is None else _numbers("--top-p", top_p),
        usual.top_ks if top_k is None else [int(k) for k in _numbers("--top-k", top_k, True)],
        usual.n if n is None else n,
        max_new_tokens,
        usual.seed if seed is None else seed,
    )


def _numbers(option: str, given: str, whole: bool = False) -> list[float]:
    """Numbers by commas; an empty text has none."""
    found = []
    for part in filter(None, map(str.strip, given.split(","))):
        try:
            found.append(float(int(part)) if whole else float(part))
        except ValueError:
            kind = "whole numbers" if whole else "numbers"
            raise UsageProblem(f"{option} {given}", f"expected {kind} by commas") from None
    return found


def _variants(path: Path | None, form: str | None) -> list[Instruction]:
    from plumbline.eval_workers.disclosure.instructions import in_each_form, load_instructions

    forms = tuple(filter(None, map(str.strip, (form or "prefix").split(","))))
    return in_each_form(load_instructions(path), forms)


def _by_decoding(
    store: Store,
    ready: Continuer,
    probe_set: str,
    words: WordList,
    grid: Grid,
    run_id: str,
    out: Path,
) -> Iterator[str]:
    from plumbline.eval_workers.disclosure.sweep import sweep_decoding
    from plumbline.pipelines.report.model import shown
    from plumbline.pipelines.report.plots.disclosure import decoding

    done = sweep_decoding(store, ready, probe_set, words, grid, run_id)
    keys = {one.sampling_key for one in done}
    found = _figures(store, "decoding_sweep", probe_set, done[0].model_key, words.name)
    rows = [row for row in found if row["sampling_key"] in keys]
    drawn = {row["sampling_key"]: row["is_best"] for row in rows if row["parameter"] != "greedy"}
    n_best = sum(drawn.values())
    if all_tie := 1 < n_best == len(drawn):
        rows = [{**row, "is_best": False} for row in rows]
    yield f"{probe_set} by {done[0].model}: GAS by decoding (interval), female, male"
    for row in rows:
        value = "" if row["setting"] is None else f" {row['setting']:g}"
        tie = ", a tie" if n_best > 1 else ""
        mark = f", lowest GAS of those drawn at random{tie}" if row["is_best"] else ""
        empty = f", {row['n_empty']:,} prompts with nothing but blanks" if row["n_empty"] else ""
        of_all = (shown(row[f"gas_{gender}_of_all"], 3) for gender in "fm")
        figures = ", ".join([_shown(row, "gas"), *of_all])
        yield f"  {row['parameter']}{value}: {figures}{mark}{empty}"
    if all_tie:
        yield "  all that is drawn ties: no value has the lowest GAS"
    rejected = sum(one.n_rejected for one in done)
    if rejected:
        yield f"  {rejected:,} continuations could not be drawn: table reject"
    yield _plot(decoding(rows, f"{done[0].model} on {probe_set}"), out, done[0].model_key, _BY[0])
    yield f"Wrote continuation, sampling in {store.root}: {sum(o.n_new for o in done):,} new"
    yield 'Next: plumbline sql "FROM decoding_sweep ORDER BY gas"'


def _by_instruction(
    store: Store,
    ready: Continuer,
    probe_set: str,
    words: WordList,
    variants: Sequence[Instruction],
    max_new_tokens: int,
    run_id: str,
    out: Path,
) -> Iterator[str]:
    from plumbline.eval_workers.disclosure.measure import measure_opened
    from plumbline.pipelines.report.plots.disclosure import instructions

    done = []
    for i, one in enumerate(variants, 1):
        say(f"{i} of {len(variants)}: {_label(one.form, one.text)}")
        how = (words, one, max_new_tokens, run_id)
        done.append(measure_opened(store, ready, probe_set, *how))
    order = [one.key for one in variants]
    model_key, model = done[0].probed.model_key, done[0].probed.model
    found = _figures(store, "instruction_sweep()", probe_set, model_key, words.name)
    rows = [
        row
        for row in found
        if row["instruction_key"] in order and row["max_new_tokens"] in (None, max_new_tokens)
    ]
    rows.sort(key=lambda row: order.index(row["instruction_key"]))
    yield f"{probe_set} by {model}: each figure (interval), and its change by the instruction"
    for measured in done:
        key = measured.instruction.key
        yield f"  {_label(measured.instruction.form, measured.instruction.text)}"
        for row in (r for r in rows if r["instruction_key"] == key):
            change = f"; change {_shown(row, 'change')}" if key != "none" else ""
            yield f"    {row['measure']}: {_shown(row, 'figure')}{change}"
        if measured.n_empty:
            yield f"    {measured.n_empty:,} continuations are empty: no verdict on them"
        if rejected := measured.probed.n_rejected + measured.sampled.n_rejected:
            yield f"    {rejected:,} prompts could not be measured: table reject"
    yield _plot(instructions(rows, f"{model} on {probe_set}"), out, model_key, _BY[1])
    yield f"Wrote pronoun_probability, continuation, sampling, instruction in {store.root}"
    yield 'Next: plumbline sql "FROM instruction_sweep() ORDER BY measure, figure"'


def _label(form: str, text: str | None) -> str:
    return "no instruction" if text is None else f"{form}: {text}"


def _figures(store: Store, view: str, probe_set: str, model_key: str, words: str) -> list[Row]:
    from plumbline.warehouse.query.connection import rows_of

    given = {"probe_set": probe_set, "model_key": model_key, "word_list": words}
    chosen = " AND ".join(f"{column} = ${column}" for column in given)
    text = f"FROM {view} WHERE {chosen} AND {{}} ORDER BY ALL"
    only = "instruction_key = 'none'" if view == "decoding_sweep" else "true"
    rows = rows_of(store.root, text.format(only), given)
    if view != "decoding_sweep":
        return rows
    parameters = ("greedy", "temperature", "top_p", "top_k")
    return sorted(rows, key=lambda r: (parameters.index(r["parameter"]), r["setting"] or 0))


def _shown(row: Row, name: str) -> str:
    from plumbline.pipelines.report.model import digits_of, estimate

    digits = digits_of(abs(row[name] or 0))
    return estimate(row, digits, of=(name, f"{name}_low", f"{name}_high")).text


def _plot(svg: str, out: Path, model_key: str, by: str) -> str:
    path = out / f"sweep-{by}-{model_key}.svg"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(svg, encoding="utf-8", errors="replace")
    return f"Wrote {path}"
