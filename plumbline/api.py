"""The commands as Python methods, with results as data frames.

::

    wh = plumbline.open("out/warehouse")             # pandas; or frames="polars", "arrow"
    wh.count("novels", "novels/*.jsonl.zst")
    wh.words(["nurse", "captain"])

Each method does the same as the command of its name. If it stopped early, call it again to resume.
`docs/tables.md` and `docs/sql.md` describe the columns. Errors are of the class
:class:`~plumbline.warehouse.errors.PlumblineError`, with a one-line message.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from inspect import getdoc
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from plumbline.frames import Frame, Frames, file_of, frame_maker, hash_of, listed, table_of
from plumbline.warehouse.errors import UsageProblem, did_you_mean
from plumbline.warehouse.query.connection import read_only, rows_of
from plumbline.warehouse.schema.catalog import TABLES
from plumbline.warehouse.storage.store import Store

if TYPE_CHECKING:
    from plumbline.pipelines.command.base import Done
    from plumbline.pipelines.commands.why import WordAnswers

# a warning of tqdm, which model libraries import; Plumbline doesn't need ipywidgets
warnings.filterwarnings("ignore", "IProgress not found")


def open(path: str | Path, frames: Frames = "pandas", *, create: bool = False) -> Warehouse:
    """Open a warehouse: the directory or s3:// address that commands call ``--warehouse``.

    Args:
        frames: type of the results: ``pandas`` or ``polars`` data frames, or ``arrow`` tables.
        create: make the warehouse if it doesn't exist.

    Raises:
        BadInput: the warehouse has another format, or doesn't exist and ``create`` is false.
        MissingComponent: the package for ``frames`` is not installed.

    >>> import tempfile
    >>> wh = open(tempfile.mkdtemp() + "/w", "arrow", create=True)
    >>> wh.sql("SELECT count(*) AS n FROM pair_score").to_pylist()
    [{'n': 0}]
    """
    with _as_commands():
        return Warehouse(Store.open(path, create=create), frame_maker(frames))


@contextmanager
def _as_commands() -> Iterator[None]:
    """Turn errors such as a full disk or a missing extra into one-line errors."""
    from plumbline.pipelines.environment_errors import one_line

    try:
        yield
    except Exception as e:
        line = one_line(e)
        if line is None or line is e:
            raise
        raise line from None


@dataclass(frozen=True)
class Why:
    """Why words lean: the answers of `plumbline why`, as frames of the tables that it fills.

    Attributes:
        leans: one row per word and corpus: the lean in nats, with its interval.
        sources: the lean in each source, and in the corpus without that source.
        copies: the lean if copies of a document count once.
        collocates: words around the word, with log odds of the first side against the second.
        snippets: a random sample of occurrences near each side, with their text.
    """

    answers: WordAnswers
    leans: Frame
    sources: Frame
    copies: Frame
    collocates: Frame
    snippets: Frame

    def __repr__(self) -> str:
        from plumbline.pipelines.commands.why import rendered

        return "\n".join(rendered(self.answers))


class Warehouse:
    """An open warehouse; see :func:`open`, whose ``frames`` is the type of the results."""

    def __init__(self, store: Store, frame: Callable[[pa.Table], Frame]) -> None:
        self.store = store
        self._frame = frame

    def __repr__(self) -> str:
        return f"<warehouse {self.store.root}>"

    def sql(self, query: str, params: Mapping[str, object] | None = None) -> Frame:
        """Return the rows of a query over tables and views, with its ``$params``.

        Raises ``UsageProblem`` for an invalid query, and for one that would write.
        """
        with _as_commands():
            return self._frame(read_only(self.store, query, params))

    def run(self, command: str, **options: Any) -> Frame:
        """Run a command, such as ``"fairpair run"``, with its options; return what it made.

        ``wh.fairpair_run(...)`` does the same. Give several values as a list, or with commas.
        Returns rows of the table or view that the command fills; otherwise the paths of the files
        it wrote, or the lines it printed. Its warnings are Python warnings.

        Raises ``UsageProblem`` for an unknown command or option, and the command's errors.
        """
        done = self._done(command, options)
        if done.query:
            return self.sql(done.query, done.params)
        rows = done.table or done.rows or [{"file": path} for path in done.files]
        rows = rows or [{"line": line} for line in done.said]
        return self._frame(pa.Table.from_pylist([dict(row) for row in rows]))

    def _done(self, command: str, options: Mapping[str, Any]) -> Done:
        from plumbline.pipelines.command.base import WARNING, class_of, execute
        from plumbline.pipelines.command.settings import made

        if "warehouse" in options:
            raise UsageProblem("warehouse", "is the open one", "open the other one")
        with _as_commands():
            kind = class_of(command)
            place = {} if "warehouse" in kind.without else {"warehouse": self.store.root}
            one = made(kind, {**options, **place})
            done = execute(one, self.store)
            for line in done.said:
                if line.startswith(WARNING):
                    warnings.warn(line.removeprefix(WARNING), stacklevel=4)
            if done.failed is not None:
                raise done.failed
        return done

    def __getattr__(self, name: str) -> Callable[..., Frame]:
        from plumbline.pipelines.command import registry

        by_name = {_method_name(command): command for command in registry.targets()}
        if name in by_name:
            return self._method(by_name[name], name)
        raise AttributeError(f"a warehouse has no {name!r} {did_you_mean(name, dir(self), '')}")

    def _method(self, command: str, name: str) -> Callable[..., Frame]:
        """Return a command as a method with its help."""
        from plumbline.pipelines.command.base import class_of
        from plumbline.pipelines.command.parameters import parameters

        kind = class_of(command)
        arguments = [one.name for one in parameters(kind) if one.on.positional]

        def run(*given: Any, **options: Any) -> Frame:
            if len(given) > len(arguments):
                there = ", ".join(arguments) or "none"
                raise UsageProblem(f"{name}()", f"has the arguments {there}", "name its options")
            return self.run(command, **dict(zip(arguments, given, strict=False)), **options)

        lines = [f"    {one.name}: {one.about}" for one in parameters(kind)]
        run.__name__ = run.__qualname__ = name
        run.__doc__ = "\n".join([getdoc(kind) or "", "", "Args:", *lines])
        return run

    def __dir__(self) -> list[str]:
        from plumbline.pipelines.command import registry

        return sorted({*super().__dir__(), *map(_method_name, registry.targets())})

    def count(self, corpus: str, shards: str | Sequence[str], **options: Any) -> Frame:
        """Count a corpus and associate its words, like `corpus count` and `corpus associate`.

        Shards that are already counted are not read again. Returns the corpus's row of `corpus`.

        Args:
            shards: paths or patterns, such as ``"novels/*.jsonl.zst"``.
            options: options of `corpus count`, such as ``targets="names"``, ``window=10``.

        Raises:
            UsageProblem: an option is unknown, or ``shards`` is empty.
            BadInput: no such file, or a shard can't be read (others are counted).
        """
        given = {"corpus": corpus, "shards": listed(shards), **options}
        (row,) = self._done("corpus count", given).rows
        if row["changed"] or not self.store.units("word_delta", corpus=corpus):
            # drops rows made from older deltas
            self._done("corpus associate", {"corpus": corpus})
        return self.sql("FROM corpus WHERE corpus = $corpus", {"corpus": corpus})

    def words(
        self,
        words: Sequence[str] | None = None,
        *,
        corpus: str | Sequence[str] = (),
        contrast: str = "she/he",
    ) -> Frame:
        """Return how far words lean in the corpora: rows of `word_lean`.

        ``delta_nats`` is PMI(word, she) - PMI(word, he), between ``delta_nats_low`` and
        ``delta_nats_high`` with 95% confidence. ``q`` is the p-value of no lean, corrected for all
        words of the corpus. A word that is near only one side has no delta, and its interval is
        infinite at one end. ``lean_bound_nats``, the end nearer 0, says how far it leans at least.
        Imported statistics have no interval. ``over`` is an interval's sampling unit: documents or
        sources for words that ``why`` or the report explained, else co-occurrences, which make
        most intervals too narrow.

        Args:
            words: in any case. The result keeps their order and, like pandas' `reindex`, has a row
                of missing values for a word that is near neither side. By default all words that
                are near a side, the surest leans first.
            corpus: by default all corpora, with a row for each that has the word.

        Raises ``UsageProblem`` for an unknown corpus, or if these corpora lack the contrast.
        """
        corpora = self._with_contrast(listed(corpus), contrast)
        leans = "FROM word_lean WHERE contrast = $contrast AND list_contains($corpora, corpus)"
        only = corpora[0] if len(corpora) == 1 and corpus else None
        given = {"contrast": contrast, "corpora": corpora}
        if words is None:
            surest = "is_ranked DESC, abs(lean_bound_nats) DESC, abs(delta_nats) DESC, corpus, word"
            return self.sql(f"{leans} ORDER BY {surest}", given)
        return self.sql(
            "SELECT leans.* REPLACE (asked.word AS word, $contrast AS contrast, "
            "coalesce(corpus, $only) AS corpus) "
            "FROM (SELECT unnest($words::VARCHAR[]) AS word, generate_subscripts($words, 1) AS i) "
            f"AS asked LEFT JOIN ({leans}) AS leans USING (word) ORDER BY i, corpus",
            given | {"only": only, "words": [word.lower() for word in listed(words)]},
        )

    def _with_contrast(self, corpora: Sequence[str], contrast: str) -> list[str]:
        """Return the named corpora, or all; raise ``UsageProblem`` if none has the contrast."""
        from plumbline.jobs.counting.corpus_lookup import corpus_row

        with _as_commands():
            for name in corpora:
                corpus_row(self.store, name)
            rows = rows_of(self.store, "SELECT DISTINCT corpus, contrast FROM word_lean")
        of = [row for row in rows if not corpora or row["corpus"] in corpora]
        if contrast not in {row["contrast"] for row in of}:
            there = ", ".join(sorted({row["contrast"] for row in of}))
            fix = f"there is {there}" if there else "run `plumbline corpus associate` first"
            raise UsageProblem(f"contrast {contrast!r}", "no word has a lean for it", fix)
        return list(corpora) or [row["corpus"] for row in of]

    def why(self, words: str | Sequence[str], **options: Any) -> Why:
        """Explain why words lean, like `plumbline why`, with its ``options``.

        Raises ``UsageProblem`` when no corpus holds any of the words.
        """
        from plumbline.pipelines.command.settings import made
        from plumbline.pipelines.commands import why

        with _as_commands():
            answers = made(why.Why, {"words": listed(words), **options}).answers(self.store)
        names = ("word_evidence", "word_source", "word_copies", "word_collocate", "word_snippet")
        tables = (
            pa.Table.from_pylist(list(answers.rows[name]), schema=TABLES[name].arrow)
            for name in names
        )
        return Why(answers, *map(self._frame, tables))

    def benchmark(
        self,
        name: str,
        source: Any = None,
        *,
        groups: Sequence[str] = (),
        recipe: str = "",
    ) -> Frame:
        """Import sentence pairs, like `plumbline benchmark import`, and return them.

        Rows that can't be used are listed in the table `reject`, with the reason.

        Args:
            name: a benchmark of `plumbline benchmark show`, or a name for your own pairs.
            source: your own pairs: a file, or a frame with the columns of `docs/pairs.md`, such
                as ``sentence_a`` and ``sentence_b``.

        Raises:
            UsageProblem, BadInput: like the command. A source without usable pairs changes nothing.
        """
        how = {"groups": listed(groups), "recipe": recipe}
        with file_of(name, source) as path:
            return self.run("benchmark import", names=[name], source=path, **how)

    def score(self, model: str, pairs: Any, **options: Any) -> Frame:
        """Score both sentences of each pair, like `plumbline score`.

        Computes only missing scores. Returns rows of `scored_pair`: ``log_ratio_nats`` is
        ``logprob_a_nats`` - ``logprob_b_nats``. Pairs that can't be scored are in `reject`.

        Args:
            model: hub id, or a directory.
            pairs: name of a benchmark, or a frame of pairs, which is imported as ``pairs-HASH``.
            options: options of `score`, such as ``dtype="bfloat16"``, ``adapter="..."``.

        Raises:
            UsageProblem: an option is unknown, or the benchmark is not in the warehouse.
            BadInput: the model can't be downloaded or used.
        """
        name = pairs if isinstance(pairs, str) else f"pairs-{hash_of(table_of(pairs))}"
        if not isinstance(pairs, str):
            self.benchmark(name, pairs)
        return self.run("score", model=model, benchmark=[name], **options)

    def compare(self, a: str, b: str, *, epsilon_nats: float | None = None) -> Frame:
        """Return how US and PD change from model ``a`` to ``b``, on the pairs that both scored.

        Each benchmark, pair of groups and measure has a row, with the paired 95% interval of the
        difference (US is a share, PD in points). ``epsilon_nats`` is ln 1.65 by default.

        Args:
            a, b: names, labels or keys of models, as `plumbline measure` shows them.

        Warns, like the report, if the models' scores are different measures.

        Raises:
            UsageProblem: no model or several have a name; no pair in common; an invalid epsilon.
        """
        from plumbline.eval_workers.scoring.measure import MeasureOptions
        from plumbline.pipelines.report.sentences import of_different_measures
        from plumbline.warehouse.options import make

        given = {} if epsilon_nats is None else {"epsilon": epsilon_nats}
        with _as_commands():
            one, other = self._model(a), self._model(b)
            params = {"epsilon": make(MeasureOptions, given).epsilon}
            table = read_only(
                self.store, _COMPARED, params | {"a": one["model_key"], "b": other["model_key"]}
            )
        if not table.num_rows:
            both, fix = f"models {a!r} and {b!r}", "score one benchmark with two different models"
            raise UsageProblem(both, "scored no pair in common", fix)
        measures = {"measure": one["measure"], "reference_measure": other["measure"]}
        if line := of_different_measures([measures]):
            warnings.warn(line, stacklevel=2)
        return self._frame(table)

    def report(self, out: str | Path = "out/report", **options: Any) -> Path:
        """Write the page of `plumbline report`; return its path.

        Args:
            options: options of `report`, such as ``benchmark="ages*"``, ``at=41``.
        """
        return Path(self._done("report", {"out": out, **options}).files[0])

    def _model(self, model: str) -> dict[str, Any]:
        """Return the one scored model with this label, else this name, else this key."""
        query = "SELECT model_key, model, label, measure FROM model_label"
        rows = rows_of(self.store, f"{query} JOIN model USING (model_key)")
        for name in ("label", "model", "model_key"):
            found = [row for row in rows if row[name] == model]
            if len(found) == 1:
                return found[0]
        labels = ", ".join(sorted(repr(row["label"]) for row in rows)) or "none yet"
        problem = "names several" if any(row["model"] == model for row in rows) else "has no scores"
        raise UsageProblem(f"model {model!r}", problem, f"there are {labels}")


_COMPARED = """
SELECT
    benchmark, groups, measure,
    CASE measure WHEN 'us' THEN 'share' ELSE 'points' END AS unit, n_pairs,
    reference_mean AS before_mean, model_mean AS after_mean,
    difference, difference_low, difference_high, direction
FROM preference_pairwise(epsilon := $epsilon, reference := $a, of_model := $b)
WHERE $a <> $b
ORDER BY benchmark, groups, measure
"""


def _method_name(command: str) -> str:
    return command.replace(" ", "_").replace("-", "_")
