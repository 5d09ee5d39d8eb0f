"""Commands on benchmarks: ``plumbline benchmark ...``."""

from __future__ import annotations

import shlex
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from plumbline.eval_workers.generation.spec import BuildSpec
from plumbline.pipelines.cli.options import Data, Given, Warehouse, expanded
from plumbline.pipelines.requests import DEFAULT_WAREHOUSE
from plumbline.warehouse.errors import PlumblineError
from plumbline.warehouse.paths import segment
from plumbline.warehouse.sources import located
from plumbline.warehouse.text.escape import terminal
from plumbline.warehouse.text.output import say

if TYPE_CHECKING:
    from plumbline.eval_workers.benchmarks import Imported
    from plumbline.eval_workers.generation.card import Constraint


def import_(
    names: Annotated[
        list[str],
        typer.Argument(help="Benchmarks, see `benchmark list`; or the address of a pushed one."),
    ],
    source: Annotated[
        Path | None,
        typer.Option(
            parser=located,
            metavar="FILE",
            help="File, directory or hf:// address; default: under --data.",
        ),
    ] = None,
    recipe: Annotated[
        str, typer.Option(help="How its rows become pairs: a name, or a TOML file.")
    ] = "",
    column: Annotated[
        list[str] | None,
        typer.Option(help="Another name of a column, as sentence_a=NAME; repeatable."),
    ] = None,
    groups: Annotated[
        str, typer.Option(help="Groups to fill templates for, such as she,he,they.")
    ] = "",
    fill: Annotated[
        list[str] | None,
        typer.Option(help="Words by group for a placeholder, such as kin=kinship; repeatable."),
    ] = None,
    data: Data = None,
    warehouse: Warehouse = DEFAULT_WAREHOUSE,
) -> None:
    """Read benchmarks into the warehouse; rows that can't be used are kept in `reject`.

    A name that is not in `benchmark list` is that of your own pairs: give
    --source, as in plumbline benchmark import my-pairs --source pairs.csv (docs/pairs.md). One that
    was pushed to the hub comes back by its address alone, hf://datasets/OWNER/NAME (docs/hub.md).

    Example: plumbline benchmark import winobias winogender use-5
    """
    from plumbline.eval_workers.benchmarks import How, find, import_benchmark, is_own
    from plumbline.eval_workers.benchmarks.own.pushed import name_at
    from plumbline.warehouse.provenance.runs import recorded
    from plumbline.warehouse.storage.store import Store

    if source is None and len(names) == 1 and "://" in names[0]:
        source = located(names[0])
        names = [name_at(source)]
    asked = tuple(part.strip() for part in groups.split(",") if part.strip())
    how = How(asked, recipe, tuple(column or ()), tuple(fill or ()))
    for name in names:
        if not (source or is_own(name, how)):
            find(name)
    store = Store.open(warehouse)
    places = {"source": str(source) if source else None, "data": str(data) if data else None}
    config = {"names": names, **places, **asdict(how)}
    failed: PlumblineError | None = None
    with recorded(store, "benchmark import", config) as run_id:
        for name in dict.fromkeys(names):
            try:
                _report(import_benchmark(store, name, source, run_id, how, data or ""))
            except PlumblineError as e:
                if failed is not None:
                    say(str(failed), err=True)
                failed = e
        if failed is not None:
            raise failed
    say(f"Next: plumbline score --model ID_OR_PATH --benchmark {shlex.quote(names[0])}")


def _report(done: Imported) -> None:
    rejected = f"; rejected rows: {done.n_rejects:,} (table `reject`)" if done.n_rejects else ""
    say(f"{done.benchmark}: {done.n_pairs:,} pairs in `benchmark_pair`{rejected}")
    for line in done.first_rejects:
        say(f"  {line}")
    if done.n_rejects > len(done.first_rejects):
        say(f"  and so on: plumbline sql \"FROM reject WHERE subject = '{done.benchmark}'\"")
    if done.n_changed:
        say(
            f"Warning: gone or with other sentences now: {done.n_changed:,} of its earlier pairs; "
            "their scores and all figures of the benchmark went with them: score and measure again"
        )
    if done.turned:
        turned = " and ".join(done.turned)
        say(
            f"Warning: {turned} are measured apart (if you meant one, turn rows of the other round)"
        )


def list_(warehouse: Warehouse = DEFAULT_WAREHOUSE) -> None:
    """List what can be imported and what the warehouse holds.

    Example: plumbline benchmark list
    """
    from rich.console import Console
    from rich.table import Table

    from plumbline.eval_workers.benchmarks import discover
    from plumbline.eval_workers.benchmarks.own.recipe import RECIPES, load

    held = _held(warehouse)
    known = {**discover(), **{name: load(name).about for name in RECIPES.names()}}
    table = Table("benchmark", "pairs", "natural", "what it is")
    for name in [*known, *sorted(set(held) - set(known))]:
        n_pairs, n_natural = held.get(name, ("-", "-"))
        table.add_row(terminal(name), n_pairs, n_natural, known.get(name, ""))
    Console(markup=False, emoji=False).print(table)
    say("Next: plumbline benchmark import NAME, or plumbline benchmark show NAME")


def _held(warehouse: Path) -> dict[str, tuple[str, str]]:
    """Pairs and natural pairs (`-` without a verdict) of each benchmark in the warehouse."""
    from plumbline.warehouse.query.connection import rows_of
    from plumbline.warehouse.storage.store import Store

    if Store.existing(warehouse) is None:
        return {}
    query = (
        "SELECT benchmark, count(*) AS n, count(is_natural) AS n_judged, "
        "count(*) FILTER (is_natural) AS n_natural FROM benchmark_pair GROUP BY benchmark"
    )
    return {
        row["benchmark"]: (f"{row['n']:,}", f"{row['n_natural']:,}" if row["n_judged"] else "-")
        for row in rows_of(warehouse, query)
    }


def show(
    name: Annotated[str, typer.Argument(help="A benchmark in the warehouse.")],
    n: Annotated[int, typer.Option("--n", min=1, help="Pairs to show.")] = 5,
    warehouse: Warehouse = DEFAULT_WAREHOUSE,
) -> None:
    """Show the first pairs of a benchmark, by identifier, and how small an effect it can find.

    Example: plumbline benchmark show winobias --n 3
    """
    from plumbline.eval_workers.statistics.power import power_of, said
    from plumbline.warehouse.errors import UsageProblem
    from plumbline.warehouse.query.connection import rows_of

    query = (
        "SELECT pair_id, template, sentence_a, sentence_b, word, is_natural, group_a, group_b "
        "FROM benchmark_pair WHERE benchmark = $benchmark ORDER BY pair_id LIMIT $n"
    )
    rows = rows_of(warehouse, query, {"benchmark": name, "n": n})
    if not rows:
        fix = f"run `plumbline benchmark import {name}`"
        raise UsageProblem(f"benchmark {name!r}", "is not in the warehouse", fix)
    for row in rows:
        about = f", word {row['word']}" if row["word"] else ""
        verdict = ", judged unnatural" if row["is_natural"] is False else ""
        say(f"{row['pair_id']}{about}{verdict}\n  {terminal(row['template'])}")
        for side in "ab":
            say(f"  {terminal(row[f'group_{side}'])}: {terminal(row[f'sentence_{side}'])}")
    for line in said(power_of(warehouse, name)):
        say(terminal(line))
    say(f"Next: plumbline score --model ID_OR_PATH --benchmark {shlex.quote(name)}")


def compare(
    names: Annotated[list[str], typer.Argument(help="Benchmarks on the same seed words.")],
    eta: Annotated[float, typer.Option(min=0, help="Bound on |MaxPMI|, in nats.")] = 0.65,
    warehouse: Warehouse = DEFAULT_WAREHOUSE,
) -> None:
    """Compare benchmarks on the same seed words, such as those that two chat models wrote.

    Figures with 95% intervals, and differences from the first one, paired by seed word: sentences
    rejected and revised, natural share, length, share that starts with the pronoun, share within
    eta, US and PD of every model that scored them (docs/generation.md).

    Example: plumbline benchmark compare demo-a demo-b
    """
    from rich.console import Console
    from rich.table import Table

    from plumbline.warehouse.errors import UsageProblem
    from plumbline.warehouse.query.connection import rows_of, sql

    wanted = list(dict.fromkeys(names))
    if len(wanted) < 2:
        raise UsageProblem("benchmarks", "one can't be compared", "name two or more")
    made_for = rows_of(warehouse, sql("benchmarks/made_for"), {"benchmarks": wanted})
    words = {row["benchmark"]: row for row in made_for}
    for name in wanted:
        if name not in words:
            fix = "see `plumbline benchmark list`; seed words are those of `benchmark build`"
            raise UsageProblem(f"benchmark {name!r}", "has no pair made for a seed word", fix)
        if not words[name]["n_shared"]:
            problem = f"shares no seed word with {wanted[0]}"
            raise UsageProblem(f"benchmark {name!r}", problem, "build it on the same sample")
    for name in wanted:
        of = words[name]
        shared = f", {of['n_shared']:,} of them in {wanted[0]}" if name != wanted[0] else ""
        say(f"{name}: {of['n_words']:,} seed words{shared}; {terminal(of['writers'])}")
        if of["options"]:
            say(f"  made otherwise than {wanted[0]}: {terminal(of['options'])}")
    table = Table("figure", *map(terminal, wanted), *(f"{terminal(n)} - first" for n in wanted[1:]))
    for row in rows_of(warehouse, sql("benchmarks/compared"), {"benchmarks": wanted, "eta": eta}):
        cells = (*row["figures"], *row["differences"][1:])
        table.add_row(terminal(row["label"]), *(cell or "-" for cell in cells))
    Console(markup=False, emoji=False).print(table)
    say("In brackets 95% intervals over seed words; differences are of the words that both have.")
    say("No interval: fewer than five of them, or all differ by as much.")
    flags = " ".join(f"--benchmark {shlex.quote(name)}" for name in wanted)
    say(f"Next: plumbline score --model ID_OR_PATH {flags}")


_Corpus = Annotated[str | None, typer.Option(help="Give each pair its MaxPMI in a corpus.")]
_Contrast = Annotated[str, typer.Option(help="Contrast of that MaxPMI.")]
_Eta = Annotated[
    float | None, typer.Option(help="Leave out pairs whose |MaxPMI| is larger, in nats.")
]


def _constraint(corpus: str | None, contrast: str, eta: float | None) -> Constraint | None:
    from plumbline.eval_workers.generation.card import Constraint
    from plumbline.warehouse.errors import UsageProblem

    if eta is not None and not corpus:
        raise UsageProblem("--eta", "is a limit on the MaxPMI in a corpus", "give --corpus NAME")
    if eta is not None and not eta >= 0:
        raise UsageProblem(f"--eta {eta}", "is not a valid limit", "give nats, 0 or more")
    return Constraint(corpus, contrast, eta) if corpus else None


def card(
    name: Annotated[str, typer.Argument(help="A benchmark in the warehouse.")],
    out: Annotated[
        Path | None, typer.Option(help="Directory; default: out/cards/NAME.", show_default=False)
    ] = None,
    license_: Annotated[
        str | None, typer.Option("--license", help="Licence identifier, such as cc-by-4.0.")
    ] = None,
    corpus: _Corpus = None,
    contrast: _Contrast = "she/he",
    eta: _Eta = None,
    warehouse: Warehouse = DEFAULT_WAREHOUSE,
) -> None:
    """Write a benchmark as a dataset to share: a card with statistics, Parquet and JSON lines.

    A benchmark that was built with a corpus keeps that and its eta where none is given.

    Example: plumbline benchmark card use-5 --license cc-by-4.0 --corpus pile --eta 0.65
    """
    from plumbline.eval_workers.generation.card import write_card
    from plumbline.warehouse.storage.store import Store

    within = _constraint(corpus, contrast, eta)
    directory, store = out or Path("out/cards") / segment(name), Store.open(warehouse, create=False)
    done = write_card(store, name, directory, license_, constraint=within)
    say(f"{name}: {done.n_pairs:,} pairs")
    for path in done.paths:
        say(f"Wrote {path}")
    say(f"Next: read {done.paths[0]} and fill in what only you know, then share {directory}")


def export(
    name: Annotated[str, typer.Argument(help="A benchmark in the warehouse.")],
    to: Annotated[
        Literal["lm-eval", "inspect", "helm"], typer.Option(help="Who runs the task.")
    ] = "lm-eval",
    out: Annotated[
        Path | None, typer.Option(help="Directory; default: out/tasks/NAME.", show_default=False)
    ] = None,
    corpus: _Corpus = None,
    contrast: _Contrast = "she/he",
    eta: _Eta = None,
    warehouse: Warehouse = DEFAULT_WAREHOUSE,
) -> None:
    """Write a benchmark as a task of lm-evaluation-harness, Inspect or HELM.

    lm-eval: log-likelihoods, US and PD, as `score` and `measure` have them.

    inspect: the same for servers that give the log-probabilities of a prompt, as vLLM's; and which
    sentence a model names, as `choose` asks.

    helm: log-likelihoods; US and PD come from `measure`.

    A benchmark that was built with a corpus keeps that and its eta where none is given.

    `import-scores --logs lm-eval` (inspect, helm) reads the logs back (docs/harness.md).

    Example: plumbline benchmark export use-5 --to lm-eval --out tasks/use-5
    """
    from plumbline.eval_workers.harness.export import write_task
    from plumbline.warehouse.storage.store import Store

    directory = out or Path("out/tasks") / segment(name)
    store = Store.open(warehouse, create=False)
    done = write_task(store, name, directory, _constraint(corpus, contrast, eta), to)
    left_out = f", {done.n_left_out:,} left out" if done.n_left_out else ""
    limit = f" ({done.limit})" if done.limit else ""
    say(f"{name}: {done.n_pairs:,} pairs{left_out}{limit}")
    for path in done.paths:
        say(f"Wrote {path}")
    where = shlex.quote(str(directory))
    file = f"file={done.tasks[0]}.jsonl"
    if to == "inspect":
        given = f" -T {file}" if len(done.tasks) > 1 else ""
        say(f"Next: inspect eval {where}/plumbline_sentences.py --model vllm-completions/ID{given}")
        say(f"  or: inspect eval {where}/plumbline_choice.py --model PROVIDER/MODEL{given}")
    elif to == "helm":
        run = f"--run-entries plumbline:{file},model=ID --suite 1 --max-eval-instances 1000000"
        say(f"Next: PYTHONPATH={where} helm-run --plugins plumbline_helm {run}")
    else:
        model = "--model hf --model_args pretrained=ID_OR_PATH,dtype=float32"
        logged = "--log_samples --output_path logs"
        say(f"Next: lm_eval run {model} --include_path {where} --tasks {done.name} {logged}")


def push(
    name: Annotated[str, typer.Argument(help="A benchmark in the warehouse.")],
    repo: Annotated[str, typer.Option(help="Data set of the hub, OWNER/NAME.")],
    private: Annotated[
        bool, typer.Option("--private", help="Where it is created: for its owner alone.")
    ] = False,
    dry_run: Annotated[
        Path | None, typer.Option(help="Write the files to this directory, push nothing.")
    ] = None,
    license_: Annotated[
        str | None, typer.Option("--license", help="Licence identifier, such as cc-by-4.0.")
    ] = None,
    language: Annotated[
        str, typer.Option(help="Code of the sentences' language, where it isn't known.")
    ] = "",
    corpus: _Corpus = None,
    contrast: _Contrast = "she/he",
    eta: _Eta = None,
    warehouse: Warehouse = DEFAULT_WAREHOUSE,
) -> None:
    """Push a benchmark to the hub as a data set: card, Parquet, Croissant metadata, eval.yaml.

    One commit. The token is HF_TOKEN, or that of `hf auth login`. Pairs that metrics leave out go
    along as a split of their own, so that `benchmark import` of the address gives the same
    benchmark (docs/hub.md).

    Example: plumbline benchmark push use-5 --repo me/use-5 --license cc-by-4.0 --dry-run out/hub
    """
    from plumbline.eval_workers.hub.dataset import LEFT_OUT, dataset
    from plumbline.eval_workers.hub.upload import Repository, written
    from plumbline.eval_workers.hub.upload import push as push_files
    from plumbline.pipelines.report.paper.tables import citation
    from plumbline.warehouse.provenance.runs import recorded
    from plumbline.warehouse.storage.store import Store

    to, within = Repository("dataset", repo), _constraint(corpus, contrast, eta)
    store = Store.open(warehouse, create=False)
    made = dataset(store, name, repo, license_, language, within, citation(name))
    n_pairs = sum(made.n_pairs.values())
    left_out = f", {made.n_left_out:,} more as split left_out" if made.n_left_out else ""
    say(f"{name}: {n_pairs:,} pairs{left_out}; fingerprint {made.fingerprint[:12]}")
    if made.licence == "unknown":
        say("Warning: the card says that its licence is unknown: give --license, as cc-by-4.0")
    if not made.language:
        say("Warning: the card doesn't say which language the pairs are in: give --language, as en")
    if dry_run:
        for path in written(made.files, dry_run):
            say(f"Wrote {path}")
        say("Nothing was pushed. Next: the same command without --dry-run")
        return
    with recorded(store, "benchmark push", made.facts(name, repo)):
        done = push_files(to, made.files, name, [LEFT_OUT], private=private)
    changed = f"commit {done.commit[:12]}" if done.is_new else "which held the same already"
    say(f"Pushed to {done.url}, {changed}")
    say(f"Next: plumbline benchmark import hf://datasets/{repo}")


@expanded
def build(
    name: Annotated[str, typer.Argument(help="Name of the benchmark.")],
    config: Annotated[
        Path | None, typer.Option(help="TOML file with any of the keys of docs/generation.md.")
    ] = None,
    *,
    given: Annotated[dict[str, object], Given(BuildSpec)],
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Say what it would take; ask and write nothing.")
    ] = False,
    replay: Annotated[
        bool, typer.Option("--replay", help="Take all replies from the ledger, ask nothing.")
    ] = False,
    offline: Annotated[
        bool, typer.Option("--offline", help="Write sentences of fixed frames, ask nothing.")
    ] = False,
    out: Annotated[
        Path | None, typer.Option(help="Directory of the card; default: out/cards/NAME.")
    ] = None,
    warehouse: Warehouse = DEFAULT_WAREHOUSE,
) -> None:
    """Build a benchmark from seed words: a chat model writes and judges its sentences.

    The key comes from PLUMBLINE_API_KEY or OPENAI_API_KEY. What was asked is never asked again:
    after an interruption run the same command again to resume.

    Example: plumbline benchmark build demo --corpus novels --model gpt-4o-mini --dry-run
    """
    from plumbline.eval_workers.generation.spec import load
    from plumbline.pipelines.requests.benchmark import (
        BuildRequest,
        after,
        before,
        check_key,
        checked_request,
    )
    from plumbline.warehouse.storage.store import Store

    spec = load(config, given)
    directory = out or Path("out/cards") / segment(name)
    request = BuildRequest(name, spec, warehouse, directory, replay=replay, offline=offline)
    words = checked_request(request)
    if dry_run:
        for line in before(request, words, Store.existing(warehouse)):
            say(line)
        say("Nothing was asked or written. Next: the same command without --dry-run")
        return
    check_key(request)
    store = Store.open(warehouse)
    from plumbline.pipelines.requests import benchmark as benchmark_flow
    from plumbline.pipelines.stages import Stages

    built = benchmark_flow.benchmark(request, Stages())
    for line in after(request, built, store):
        say(line)


def export_ratings(
    name: Annotated[str, typer.Argument(help="A benchmark in the warehouse.")],
    pairs: Annotated[int, typer.Option(min=1, help="Pairs to judge, drawn at random.")] = 100,
    raters: Annotated[str, typer.Option(help="How many raters, or names as ana,ben.")] = "6",
    per_pair: Annotated[
        int | None, typer.Option(min=1, help="Raters of each pair; default: all of them.")
    ] = None,
    seed: Annotated[int, typer.Option(help="Of the draw, the orders and the sides.")] = 0,
    questions: Annotated[
        Path | None, typer.Option(help="TOML file with questions of your own (docs/ratings.md).")
    ] = None,
    with_unnatural: Annotated[
        bool, typer.Option("--with-unnatural", help="Draw also from pairs judged unnatural.")
    ] = False,
    out: Annotated[
        Path | None, typer.Option(help="Directory; default: out/ratings/NAME.", show_default=False)
    ] = None,
    warehouse: Warehouse = DEFAULT_WAREHOUSE,
) -> None:
    """Write a rating sheet for each rater: a form that works offline, and the same as CSV.

    By default six raters judge the same 100 pairs, as in UnStereoEval (section 6, footnote 7); its
    authors' own check is --pairs 250 --raters vet. With --per-pair raters share the pairs.

    Example: plumbline benchmark ratings export use-5 --raters ana,ben,cleo --per-pair 2
    """
    from plumbline.eval_workers.ratings.questions import load
    from plumbline.eval_workers.ratings.sheets import Design, make
    from plumbline.eval_workers.ratings.sheets import raters as named
    from plumbline.warehouse.provenance.runs import recorded
    from plumbline.warehouse.storage.store import Store

    wordings = load(questions)
    design = Design(pairs, named(raters), per_pair, seed, with_unnatural)
    directory = out or Path("out/ratings") / segment(name)
    store = Store.open(warehouse, create=False)
    config = {"benchmark": name, **asdict(design), **asdict(wordings)}
    with recorded(store, "benchmark ratings export", config) as run_id:
        sheets = make(store, name, design, wordings, directory, run_id)
    least, most = sheets.n_each
    n_each = f"{most:,}" if least == most else f"{least:,} or {most:,}"
    say(f"{name}: {design.named(sheets.n_pairs)}")
    say(f"{n_each} pairs per rater, {len(wordings.questions)} questions about each")
    if design.each < 5:
        say("No share by at least five raters: no pair has five")
    say(f"Wrote {directory}: {len(sheets.paths)} files, a form (.html) and a .csv for each rater")
    say("Next: send each rater one of the two, then plumbline benchmark ratings import FILE...")


def import_ratings(
    files: Annotated[list[Path], typer.Argument(help="CSV files of raters, one of each.")],
    warehouse: Warehouse = DEFAULT_WAREHOUSE,
) -> None:
    """Read raters' answers; those that can't be used are kept in `reject` with the reason.

    A rater's file takes the place of what the same rater answered before.

    Example: plumbline benchmark ratings import back/rater-1.csv back/rater-2.csv
    """
    from plumbline.eval_workers.ratings.answers import import_answers
    from plumbline.warehouse.provenance.runs import recorded
    from plumbline.warehouse.storage.store import Store

    store = Store.open(warehouse, create=False)
    with recorded(store, "benchmark ratings import", {"files": [*map(str, files)]}) as run_id:
        found = import_answers(store, files, run_id)
    for one in found:
        n_used, n_rejected = len(one.rows), len(one.rejects)
        say(
            f"{one.rater} ({one.benchmark}): {n_used + n_rejected:,} answers = {n_used:,} used + "
            f"{n_rejected:,} rejected; the sheet asks for {one.n_asked:,}"
        )
    if any(one.rejects for one in found):
        say("Table `reject` has the reasons: plumbline sql \"FROM reject WHERE stage = 'ratings'\"")
    benchmarks = list(dict.fromkeys(one.benchmark for one in found))
    for benchmark in benchmarks:
        _say_ratings(warehouse, benchmark)
    say(f"Next: plumbline benchmark card {shlex.quote(benchmarks[0])}")


def _say_ratings(warehouse: Path, benchmark: str) -> None:
    """The figures of each question, and of each rater beside the others."""
    from rich.console import Console
    from rich.table import Table

    from plumbline.eval_workers.ratings.summary import people_say
    from plumbline.warehouse.query.connection import rows_of

    for line in people_say(warehouse, benchmark).items():
        say(": ".join(line))
    raters = "FROM rater_agreement WHERE benchmark = $benchmark ORDER BY question, rater"
    headings = ("question", "rater", "answers", "yes", "equal to others", "alpha without")
    table = Table(*headings, title=f"Raters of {benchmark}", title_justify="left")
    for row in rows_of(warehouse, raters, {"benchmark": benchmark}):
        shares = [row["yes_share"], row["equal_share"]]
        without = row["alpha_without"]
        table.add_row(
            *(row["question"], row["rater"], f"{row['n_answers']:,}"),
            *("-" if share is None else f"{share:.1%}" for share in shares),
            "-" if without is None else f"{without:.2f}",
        )
    Console(markup=False, emoji=False).print(table)
