"""`plumbline benchmark ...`: import, show, build, filter and export sentence pairs."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

from pydantic import Field

from plumbline.eval_workers.chat.client import find_key
from plumbline.eval_workers.chat.ledger import read_ledger
from plumbline.eval_workers.chat.session import Build
from plumbline.eval_workers.pairs import benchmarks, recipe
from plumbline.eval_workers.writing import build
from plumbline.eval_workers.writing.build_spec import BuildSpec
from plumbline.jobs.kernel.corpus_options import LEAST_COUNT
from plumbline.pipelines.command.base import Command, Context, Done, On, Row, planned
from plumbline.pipelines.command.fields import (
    BenchmarkNames,
    ContrastOption,
    DataOption,
    OutputDirectory,
)
from plumbline.warehouse.errors import UsageProblem
from plumbline.warehouse.input.remote_files import located
from plumbline.warehouse.paths import segment
from plumbline.warehouse.query.connection import rows_of
from plumbline.warehouse.storage.store import Store
from plumbline.warehouse.text.escape import say

#: Selects the pairs of benchmarks.
_PAIRS = "FROM benchmark_pair WHERE list_contains($names, benchmark) ORDER BY benchmark, pair_id"


def _score_line(benchmark: str) -> str:
    return f"plumbline score --model ID_OR_PATH --benchmark {shlex.quote(benchmark)}"


class BenchmarkImport(DataOption, Command):
    """Import benchmarks into the warehouse. Unusable rows go to table `reject`.

    To import your own pairs, choose a name that `benchmark show` doesn't list, and give --source:
    plumbline benchmark import my-pairs --source pairs.csv (docs/pairs.md). --dry-run reads all
    rows and shows what would be imported.

    Example: plumbline benchmark import winobias winogender use-5
    """

    makes_warehouse = True

    names: Annotated[
        tuple[str, ...],
        Field(min_length=1, description="Benchmarks to import; `benchmark show` lists them."),
        On(positional=True),
    ]
    source: Annotated[
        str | None,
        Field(description="File, directory or hf:// address to read; default: look in --data."),
        On(metavar="FILE"),
    ] = None
    recipe: Annotated[
        str, Field(description="Recipe that makes pairs from rows: its name, or a TOML file.")
    ] = ""
    groups: Annotated[
        tuple[str, ...],
        Field(description="Fill templates with words of these groups, such as she,he,they."),
    ] = ()

    def place(self) -> Path | None:
        return located(self.source) if self.source else None

    def plan(self, store: Store | None) -> Iterator[Row]:
        """Yield how many pairs and rejected rows each benchmark has. Print warnings about pairs."""
        source, how = self.place(), (self.data or "", self.groups, self.recipe)
        for name in dict.fromkeys(self.names):
            parsed, path = benchmarks.read_pairs_of(name, source, *how)
            benchmarks.check_has_pairs(name, parsed, path)
            for line in benchmarks.caveats(parsed):
                say(line, err=True)
            groups = Counter(f"{pair['group_a']}/{pair['group_b']}" for pair in parsed.pairs)
            kinds = ", ".join(f"{kind} {n:,}" for kind, n in groups.most_common())
            yield planned(name, "pairs", len(parsed.pairs), "", kinds)
            first = str(parsed.rejects[0]["reason"]) if parsed.rejects else ""
            yield planned(name, "rejected", len(parsed.rejects), "rows", first)

    def run(self, context: Context) -> Done:
        """Import the benchmarks in order; if one fails, the earlier ones stay imported."""
        source, how = self.place(), (self.data or "", self.groups, self.recipe)
        done = list[benchmarks.Parsed]()
        for name in dict.fromkeys(self.names):
            work = (benchmarks.import_benchmark, context.store, name, source, context.run_id)
            done.append(context.stage(f"import {name}", *work, *how))
        return Done(
            rows=[
                {"benchmark": p.name, "n_pairs": len(p.pairs), "n_rejected": len(p.rejects)}
                for p in done
            ],
            said=[line for parsed in done for line in benchmarks.caveats(parsed)],
            next=_score_line(self.names[0]),
            query=_PAIRS,
            params={"names": list(self.names)},
        )


#: How many pairs each benchmark has, and how many are natural (NULL if no pair was judged).
_HELD = """
SELECT benchmark, count(*) AS n_pairs,
    CASE WHEN count(is_natural) > 0 THEN count_if(is_natural)::BIGINT END AS n_natural
FROM benchmark_pair GROUP BY benchmark ORDER BY benchmark
"""
_FIRST = """
SELECT pair_id, word, is_natural, template, group_a, sentence_a, group_b, sentence_b
FROM benchmark_pair WHERE benchmark = $benchmark ORDER BY pair_id LIMIT $n
"""


class BenchmarkShow(Command):
    """List benchmarks, or show the first pairs of a benchmark.

    The list shows the benchmarks that you can import, and the benchmarks in the warehouse.

    Example: plumbline benchmark show winobias --n 3
    """

    opens_warehouse = False  # the list needs no warehouse
    records = False

    name: Annotated[
        str,
        Field(description="Benchmark whose pairs to show; default: list all benchmarks."),
        On(positional=True),
    ] = ""
    n: Annotated[int, Field(ge=1, le=1_000_000, description="Number of pairs to show.")] = 5

    def run(self, context: Context) -> Done:
        return self._pairs() if self.name else self._list()

    def _list(self) -> Done:
        recipes = {name: recipe.load(name).about for name in recipe.RECIPES.names()}
        known = {**benchmarks.discover(), **recipes}
        store = Store.existing(self.warehouse)
        held = {row["benchmark"]: row for row in rows_of(store.root, _HELD)} if store else {}
        blank = {"n_pairs": None, "n_natural": None}
        return Done(
            rows=[
                {"benchmark": name, **blank, **held.get(name, {}), "about": known.get(name, "")}
                for name in {**known, **held}
            ],
            next="plumbline benchmark import NAME, or plumbline benchmark show NAME",
        )

    def _pairs(self) -> Done:
        store = Store.open(self.warehouse, create=False, reads="benchmark_pair")
        rows = rows_of(store.root, _FIRST, {"benchmark": self.name, "n": self.n})
        if not rows:
            fix = f"run `plumbline benchmark import {self.name}`"
            raise UsageProblem(f"benchmark {self.name!r}", "is not in the warehouse", fix)
        return Done(rows=rows, next=_score_line(self.name))


class BenchmarkBuild(BuildSpec, Command):
    """Build a benchmark from seed words: a chat model writes sentences and judges them.

    The API key comes from PLUMBLINE_API_KEY or OPENAI_API_KEY. All replies are stored, so no
    request is paid twice. After an interruption, run the same command again to resume. To send
    no requests and use only stored replies, give `--max-requests 0`.

    Example: plumbline benchmark build demo --corpus novels --model gpt-4o-mini --dry-run
    """

    makes_warehouse = True
    without = (
        *("timeout_s", "concurrency", "token_limit", "send_seed", "max_tokens"),
        "temperature",
    )

    name: Annotated[str, Field(description="Name for the new benchmark."), On(positional=True)]
    offline: Annotated[
        bool, Field(description="Fill fixed sentence frames instead of asking a chat model.")
    ] = False

    def check(self) -> None:
        from plumbline.jobs.counting.corpus_lookup import corpus_deltas

        build.check_benchmark_name(self.name)
        if not self.offline:
            _ = self.chat_model(), self.wordings
        store = Store.existing(self.warehouse)
        build.seed_words(store, self)
        if self.corpus:  # fail before any paid request
            if store is None:
                problem = "needs a warehouse"
                raise UsageProblem(f"corpus {self.corpus!r}", problem, "give --warehouse DIR")
            corpus_deltas(store, self.corpus, self.contrast)

    def ready(self) -> None:
        if not self.offline and self.max_requests != 0:
            find_key(self.base_url)

    def plan(self, store: Store | None) -> Iterator[Row]:
        words = build.seed_words(store, self)
        yield planned(self.name, "seed words", len(words))
        yield planned(self.name, "pairs", 2 * self.n_sentences * len(words), "", "at most")
        if self.offline:
            yield planned(self.name, "requests", 0, "", "fixed frames make the sentences")
            return
        yield planned(self.name, "wordings", self.prompts or "ours", "", self.wordings.hash)
        for what, n in build.forecast(words, self).items():
            yield planned(self.name, what, n, "", "about, without revisions and repeats")
        if (spent := read_ledger(store, self.name).spent).n_requests:
            yield planned(self.name, "requests in the ledger", spent.n_requests, "", str(spent))

    def run(self, context: Context) -> Done:
        store, name = context.store, self.name
        asking = Build(store, name, context.run_id, self)
        words = context.stage("seed words", build.seed_words, store, self)
        made = build.make_pairs(context.stage, asking, words, self, offline=self.offline)
        pairs, counts, rejects = made
        facts = build.facts(self, counts, offline=self.offline)
        context.stage("publish", build.publish, asking, pairs, rejects, facts)
        said = list[str]()
        if self.corpus:
            from plumbline.jobs.association.max_pmi import constrain

            by_corpus = (store, self.corpus, name, self.contrast)
            done_pairs = context.stage(f"constrain by {self.corpus}", constrain, *by_corpus)
            pairs_said = ", ".join(f"{n:,} pairs ({c})" for c, n in done_pairs.items())
            said.append(f"{name}: MaxPMI of {pairs_said} in corpus {self.corpus}")
        if not self.offline:
            said.append(f"spent in all: {read_ledger(store, name).spent}")
        return Done(
            rows=[{"benchmark": name, **counts}],
            said=said,
            next=f"plumbline benchmark export {shlex.quote(name)}",
            query=_PAIRS,
            params={"names": [name]},
        )


class Constrain(Command):
    """Compute each pair's MaxPMI: the lean of the pair's most gendered word.

    The lean of a word that is rare near she or near he isn't used (see --least-count). A pair with
    such a word never counts as within a limit on |MaxPMI|, because the word could lean more.

    Example: plumbline benchmark constrain --corpus novels --benchmark winobias
    """

    reads = "benchmark_pair"

    corpus: Annotated[str, Field(min_length=1, description="Corpus whose leans to use.")]
    benchmark: BenchmarkNames
    contrast: Annotated[
        str | None,
        Field(
            description="Words to compare: a pair such as she/he, or a word list. Default: "
            "she/he for pairs with the groups female and male; for other pairs, their two groups."
        ),
    ] = None
    least_count: Annotated[
        int,
        Field(
            ge=0,
            le=10**9,
            description="Use a word's lean only if the word occurs at least this often near she, "
            "and near he. 0 uses every lean, as in the released MaxPMI.",
        ),
    ] = LEAST_COUNT

    def run(self, context: Context) -> Done:
        from plumbline.jobs.association.max_pmi import constrain, verdicts

        store, corpus, rows = context.store, self.corpus, list[Row]()
        first = self.benchmark[0]
        is_scored = store.units("pair_score", benchmark=first)
        for name in dict.fromkeys(self.benchmark):
            arguments = (store, corpus, name, self.contrast, self.least_count)
            done = context.stage(f"constrain {name}", constrain, *arguments)
            tally = verdicts(store, corpus, name, done)
            rows += [{"benchmark": name, "n_pairs": done[row["contrast"]], **row} for row in tally]
        return Done(
            rows=rows,
            next="plumbline measure" if is_scored else _score_line(first),
            query="FROM pair_association WHERE corpus = $corpus "
            "AND list_contains($names, benchmark) ORDER BY benchmark, contrast, pair_id",
            params={"corpus": corpus, "names": list(self.benchmark)},
        )


class BenchmarkExport(ContrastOption, Command):
    """Write a benchmark to a folder that you can share.

    The folder has the pairs in Parquet, a data card (README.md), and a task for
    lm-evaluation-harness. The task computes log-likelihoods, US and PD like `score` and `measure`.
    `score import DIR` reads the harness's logs (docs/benchmarks.md). If the benchmark was built
    with a corpus, --corpus and --eta default to the values of that build.

    Example: plumbline benchmark export use-5 --license cc-by-4.0 --corpus pile --eta 0.65
    """

    reads = "benchmark_pair"
    records = False

    name: Annotated[
        str, Field(min_length=1, description="Benchmark to export."), On(positional=True)
    ]
    corpus: Annotated[
        str | None, Field(description="Add each pair's MaxPMI in this corpus to the data.")
    ] = None
    eta: Annotated[
        float | None,
        Field(ge=0, le=1_000, description="Leave out pairs with |MaxPMI| above this, in nats."),
    ] = None
    out: Annotated[
        OutputDirectory | None, Field(description="Output folder; default: out/benchmarks/NAME.")
    ] = None
    license: Annotated[
        str | None, Field(description="Licence to name in the data card, such as cc-by-4.0.")
    ] = None

    def __post_init__(self) -> None:
        if self.eta is not None and not self.corpus:
            problem = "is a limit on the MaxPMI in a corpus"
            raise UsageProblem("--eta", problem, "give --corpus NAME")

    def run(self, context: Context) -> Done:
        from plumbline.eval_workers.pairs.export import Constraint, export

        out = self.out or Path("out/benchmarks") / segment(self.name)
        within = Constraint(self.corpus, self.contrast, self.eta) if self.corpus else None
        done = export(context.store, self.name, out, self.license, constraint=within)
        counts = {"n_pairs": done.data.num_rows, "n_left_out": done.n_unnatural + done.n_beyond}
        limit = str(done.constraint or "")
        share = f"fill in what only you know, then hf upload REPOSITORY {out} --repo-type dataset"
        return Done(
            rows=[{"benchmark": self.name, **counts, "limit": limit}],
            said=[f"To share it, read {done.paths[0]} and {share}"],
            files=tuple(map(str, done.paths)),
            next="lm_eval run --model hf --model_args pretrained=ID_OR_PATH,dtype=float32 "
            f"--include_path {shlex.quote(str(out))} --tasks {','.join(done.tasks)} --log_samples "
            "--output_path logs",
        )


class ImportRatings(Command):
    """Import people's ratings of pairs. Unusable answers go to table `reject`, with the reason.

    Each file has the columns benchmark and pair_id, and a yes/no column for each question. New
    answers replace earlier answers of the same rater (docs/generation.md).

    Example: plumbline benchmark import-ratings back/rater-1.csv back/rater-2.csv
    """

    reads = "benchmark_pair"

    files: Annotated[
        tuple[str, ...],
        Field(min_length=1, description="CSV files, one for each rater."),
        On(positional=True),
    ]

    def run(self, context: Context) -> Done:
        from plumbline.eval_workers.pairs.human_ratings import import_answers, people_say

        store = context.store
        imported = import_answers(store, [Path(file) for file in self.files], context.run_id)
        said = list(map(str, imported))
        names = list(dict.fromkeys(one.benchmark for one in imported))
        for name in names:
            said += [": ".join(line) for line in people_say(store.root, name).items()]
        params = {"names": names}
        return Done(
            rows=rows_of(store.root, _AGREEMENT, params),
            said=said,
            next=f"plumbline benchmark export {shlex.quote(names[0])}",
            query=_AGREEMENT,
            params=params,
        )


_AGREEMENT = """
SELECT benchmark, question, rater, n_answers, yes_share, equal_share
FROM rater_agreement WHERE list_contains($names, benchmark)
ORDER BY benchmark, question, rater
"""
