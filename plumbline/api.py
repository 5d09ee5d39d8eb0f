"""Run Plumbline's commands as Python methods, which return data frames.

Each method runs the command of the same name. If a method stopped early, call it again to resume.
`docs/tables.md` and `docs/sql.md` describe the columns. Each error is a
:class:`~plumbline.warehouse.errors.PlumblineError` with a one-line message.
"""

from __future__ import annotations

import hashlib
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib import import_module
from inspect import getdoc
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Literal, TypeAlias

import pyarrow as pa
import pyarrow.parquet as pq

from plumbline.jobs.counting.corpus_lookup import corpus_row
from plumbline.pipelines.command import registry
from plumbline.pipelines.command.base import WARNING, Done, class_of, execute, parameters
from plumbline.pipelines.command.settings import made
from plumbline.pipelines.environment_errors import in_one_line
from plumbline.warehouse.errors import BadInput, MissingComponent, UsageProblem, did_you_mean
from plumbline.warehouse.query.connection import read_only, rows_of
from plumbline.warehouse.storage.store import Store

Frames = Literal["pandas", "polars", "arrow"]
#: A data frame of pandas or polars, or an Arrow table; see the argument ``frames`` of `open`.
Frame: TypeAlias = Any

# Hide tqdm's warning that ipywidgets is missing: Plumbline doesn't need it.
warnings.filterwarnings("ignore", "IProgress not found")


def open(path: str | Path, frames: Frames = "pandas", *, create: bool = False) -> Warehouse:
    """Open the warehouse in a directory or at an s3:// address.

    Args:
        frames: what methods return: ``pandas`` or ``polars`` data frames, or ``arrow`` tables.
        create: make the warehouse if it doesn't exist.

    Raises:
        BadInput: the warehouse has another format, or doesn't exist and ``create`` is false.
        MissingComponent: the package for ``frames`` is not installed.

    >>> import tempfile
    >>> wh = open(tempfile.mkdtemp() + "/w", "arrow", create=True)
    >>> wh.sql("SELECT count(*) AS n FROM pair_score").to_pylist()
    [{'n': 0}]
    """
    with in_one_line():
        return Warehouse(Store.open(path, create=create), frame_maker(frames))


class Warehouse:
    """An open warehouse, made by :func:`open`. Its methods return data frames or paths."""

    def __init__(self, store: Store, frame: Callable[[pa.Table], Frame]) -> None:
        self.store = store
        self._frame = frame

    def __repr__(self) -> str:
        return f"<warehouse {self.store.root}>"

    def sql(self, query: str, params: Mapping[str, object] | None = None) -> Frame:
        """Return the rows of an SQL query. ``params`` has a value for each ``$name`` in the query.

        Raises ``UsageProblem`` if the query is invalid or would write anything.
        """
        with in_one_line():
            return self._frame(read_only(self.store, query, params))

    def run(self, command: str, **options: Any) -> Frame:
        """Run a command, such as ``"fairpair run"``, with its options. Return its results.

        ``wh.fairpair_run(...)`` does the same. If an option takes several values, give a list or a
        text with commas. Returns the rows that the command makes. A command without rows returns
        the files that it wrote, or the lines that it printed. Warnings become Python warnings.

        Raises ``UsageProblem`` for an unknown command or option, and the errors of the command.
        """
        done = self._done(command, options)
        if done.query:
            return self.sql(done.query, done.params)
        rows = done.table or done.rows or [{"file": path} for path in done.files]
        rows = rows or [{"line": line} for line in done.said]
        return self._frame(pa.Table.from_pylist([dict(row) for row in rows]))

    def _done(self, command: str, options: Mapping[str, Any]) -> Done:
        if "warehouse" in options:
            raise UsageProblem("warehouse", "is no option here", "use plumbline.open")
        with in_one_line():
            one = made(class_of(command), {**options, "warehouse": self.store.root})
            done = execute(one, self.store)
            for line in done.said:
                if line.startswith(WARNING):
                    warnings.warn(line.removeprefix(WARNING), stacklevel=4)
            if done.failed is not None:
                raise done.failed
        return done

    def __getattr__(self, name: str) -> Callable[..., Frame]:
        by_name = {_method_name(command): command for command in registry.targets()}
        if name in by_name:
            return self._method(by_name[name], name)
        fix = did_you_mean(name, dir(self), "dir() lists all names")
        raise AttributeError(f"a warehouse has no {name!r} ({fix})")

    def _method(self, command: str, name: str) -> Callable[..., Frame]:
        """Return a method that runs a command, with the command's help as its docstring."""
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
        return sorted({*super().__dir__(), *map(_method_name, registry.targets())})

    def count(self, corpus: str, shards: str | Sequence[str], **options: Any) -> Frame:
        """Count a corpus and compute how its words lean (`corpus count`, `corpus associate`).

        Shards that were counted before are not read again. Returns the row of table `corpus`.

        Args:
            shards: paths or patterns, such as ``"novels/*.jsonl.zst"``.
            options: options of `corpus count`, such as ``targets="names"``, ``window=10``.

        Raises ``UsageProblem`` if an option is unknown or ``shards`` is empty. Raises ``BadInput``
        if a file doesn't exist, or if a shard can't be read (the other shards are counted).
        """
        given = {"corpus": corpus, "shards": listed(shards), **options}
        (row,) = self._done("corpus count", given).rows
        if row["changed"] or not self.store.units("word_delta", corpus=corpus):
            # `corpus associate` also deletes rows that were computed from older deltas.
            self._done("corpus associate", {"corpus": corpus})
        return self.sql("FROM corpus WHERE corpus = $corpus", {"corpus": corpus})

    def words(
        self,
        words: Sequence[str] | None = None,
        *,
        corpus: str | Sequence[str] = (),
        contrast: str = "she/he",
    ) -> Frame:
        """Return how far words lean to *she* or *he* in corpora, as rows of view `word_lean`.

        ``delta_nats`` is PMI(word, she) - PMI(word, he). Its 95% interval is from
        ``delta_nats_low`` to ``delta_nats_high``. ``q`` is the p-value of the delta, corrected for
        testing all words of the corpus. A word that occurs near only *she* or only *he* has no
        delta, and one end of its interval is infinite. ``lean_bound_nats`` is the end nearer to 0:
        the word leans at least that far. Imported statistics have no interval.

        ``over`` says what the interval treats as independent. This is documents or sources if you
        ran ``why`` for the word, or if a report did. Otherwise it is co-occurrences, and the
        interval is mostly too narrow.

        Args:
            words: in upper or lower case. The result has the same order. A word near neither *she*
                nor *he* has a row of missing values. By default, the result has all words that
                occur near *she* or *he*, with the surest leans first.
            corpus: one or several names; by default all corpora. A word has one row for each corpus
                that contains it.
            contrast: words to use instead of *she* and *he*, such as ``they/he``.

        Raises ``UsageProblem`` if a corpus is unknown, or if none of the corpora has the contrast.
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
        """Return ``corpora`` (default: all). Raise ``UsageProblem`` if none has ``contrast``."""
        with in_one_line():
            for name in corpora:
                corpus_row(self.store, name)
            rows = rows_of(self.store, "SELECT DISTINCT corpus, contrast FROM word_lean")
        of = [row for row in rows if not corpora or row["corpus"] in corpora]
        if contrast not in {row["contrast"] for row in of}:
            there = ", ".join(sorted({row["contrast"] for row in of}))
            fix = f"there is {there}" if there else "run `plumbline corpus associate` first"
            raise UsageProblem(f"contrast {contrast!r}", "no word has a lean for it", fix)
        return list(corpora) or [row["corpus"] for row in of]

    def benchmark(
        self,
        name: str,
        source: Any = None,
        *,
        groups: Sequence[str] = (),
        recipe: str = "",
    ) -> Frame:
        """Import sentence pairs, like `plumbline benchmark import`, and return them.

        Pairs that can't be used are listed in the table `reject`, with the reason.

        Args:
            name: a benchmark of `plumbline benchmark show`, or a name for your own pairs.
            source: your own pairs, as a file or a data frame. `docs/pairs.md` lists the columns,
                such as ``sentence_a`` and ``sentence_b``.

        Raises ``UsageProblem`` or ``BadInput``. If no pair can be used, nothing changes.
        """
        how = {"groups": listed(groups), "recipe": recipe}
        with file_of(name, source) as path:
            return self.run("benchmark import", names=[name], source=path, **how)

    def score(self, model: str, pairs: Any, **options: Any) -> Frame:
        """Score both sentences of each pair, like `plumbline score`.

        Only missing scores are computed. Returns rows of view `scored_pair`. Their
        ``log_ratio_nats`` is ``logprob_a_nats`` - ``logprob_b_nats``. Pairs that can't be scored
        are in the table `reject`.

        Args:
            model: name on the Hugging Face hub, or a directory.
            pairs: name of a benchmark, or a data frame. A data frame is imported as a benchmark
                named ``pairs-HASH``.
            options: options of `score`, such as ``dtype="bfloat16"``, ``adapter="..."``.

        Raises ``UsageProblem`` if an option or the benchmark is unknown, and ``BadInput`` if the
        model can't be downloaded or used.
        """
        name = pairs
        if not isinstance(pairs, str):
            content = repr(table_of(pairs).to_pylist()).encode()
            name = f"pairs-{hashlib.sha256(content).hexdigest()[:8]}"
            self.benchmark(name, pairs)
        return self.run("score", model=model, benchmark=[name], **options)

    def report(self, out: str | Path = "out/report", **options: Any) -> Path:
        """Write a report, like `plumbline report`. Return the path of its page.

        Args:
            options: options of `report`, such as ``benchmark="ages*"``, ``at=41``.
        """
        return Path(self._done("report", {"out": out, **options}).files[0])


def _method_name(command: str) -> str:
    return command.replace(" ", "_").replace("-", "_")


def frame_maker(frames: Frames) -> Callable[[pa.Table], Frame]:
    """Return a function that converts Arrow tables to the kind of table that ``frames`` names."""
    if frames == "arrow":
        return lambda table: table
    if frames not in ("pandas", "polars"):
        raise UsageProblem(f"frames {frames!r}", "unknown", "known: pandas, polars, arrow")
    try:
        package = import_module(frames)
    except ModuleNotFoundError as e:
        fix = f'pip install {frames}, or plumbline.open(..., "arrow")'
        raise MissingComponent(frames, "is not installed", fix) from e
    if frames == "pandas":
        return lambda table: table.to_pandas()
    return package.from_arrow  # type: ignore[no-any-return]


def listed(given: str | Sequence[str]) -> list[str]:
    """Return the given texts as a list. A single text becomes a list with one item.

    >>> listed("nurse"), listed(("nurse", "cook"))
    (['nurse'], ['nurse', 'cook'])
    """
    if isinstance(given, str):
        return [given]
    if not (isinstance(given, Iterable) and all(isinstance(one, str) for one in given)):
        raise UsageProblem(f"{given!r:.80}", "is not text", "give one text, or a list of them")
    return list(given)


def table_of(source: Any) -> pa.Table:
    """Convert a data frame or a list of dictionaries to an Arrow table. Leave out the index.

    >>> table_of([{"sentence_a": "She ran."}]).column_names
    ['sentence_a']
    """
    if isinstance(source, Sequence) and all(isinstance(row, Mapping) for row in source):
        try:
            return pa.Table.from_pylist(list(source))
        except UnicodeEncodeError as e:
            fix = "remove what isn't Unicode"
            raise BadInput("pairs", f"half a surrogate pair in {e.object!r:.80}", fix) from e
    if not hasattr(source, "__arrow_c_stream__"):
        fix = "give a file, a data frame, or a list of dictionaries"
        raise UsageProblem(f"pairs of type {type(source).__name__}", "can't be read", fix)
    table = pa.table(source)
    return table.select([c for c in table.column_names if not c.startswith("__index_level_")])


@contextmanager
def file_of(name: str, source: Any) -> Iterator[Path | None]:
    """Yield the path of a file with the pairs. A data frame is written to a temporary file."""
    if source is None or isinstance(source, (str, Path)):
        yield None if source is None else Path(source)
        return
    with TemporaryDirectory() as directory:
        path = Path(directory) / f"{name}.parquet"
        pq.write_table(table_of(source), path)
        yield path
