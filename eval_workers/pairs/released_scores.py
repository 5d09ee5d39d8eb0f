"""Imports UnStereoEval's released scores of pairs into ``pair_score``.

Every row of a released file becomes a row of ``pair_score`` or of ``reject``. A pair without a
usable row counts as missing.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import groupby, pairwise
from pathlib import Path
from typing import Any, TypeAlias

from plumbline.eval_workers.models.model_lists import load
from plumbline.eval_workers.models.model_texts import described
from plumbline.eval_workers.models.scoring_contract import short_hash
from plumbline.eval_workers.pairs.pronouns.pronoun_templates import Gender, fill, template_problem
from plumbline.eval_workers.scoring.pair_scores import check_imported, text_id
from plumbline.warehouse.errors import BadInput
from plumbline.warehouse.input.input_rows import Record, read_text, records_of, rejected, truth
from plumbline.warehouse.steps.step import Row
from plumbline.warehouse.storage.store import Store

#: What a row has in common with its pair: template, word and ``is_natural``.
_Key: TypeAlias = "tuple[str, str | None, bool | None]"
#: A row's number in its file, and its figures.
_Line: TypeAlias = "tuple[Any, tuple[Any, ...]]"
_CUT = "the file ends in this row without a line end: it may be cut short"

_PATTERN = "*__scores__*.csv"
_NAME = re.compile(r"(?P<stem>.*?)__scores__(?P<model>.+)\.csv(\.gz)?")
#: Start of a file's name -> its benchmark and part.
_STEMS = {
    "coref__winobias__templates.dev": ("winobias", "dev"),
    "coref__winobias__templates.test": ("winobias", "test"),
    "coref__winogender__templates": ("winogender", None),
}
#: Folder of a file -> its benchmark.
_FOLDERS = {"5words": "use-5", "10words": "use-10", "20words": "use-20"}

_LOGPROBS = ("F_logprob", "M_logprob")
_N_TOKENS = ("F_num_tokens", "M_num_tokens")
_SENTENCES = ("template", "F_template", "M_template")
#: Columns of ``pair_score`` that are read from a row.
_SCORES = ("logprob_a_nats", "logprob_b_nats", "n_tokens_a", "n_tokens_b", "text_id")
_SEPARATORS = re.compile(r"[\W_]+")


@dataclass(frozen=True)
class ScoreFile:
    """A released file with one model's scores, for a benchmark or for one part of it (``split``).

    ``name`` is the path relative to the directory that was searched.
    """

    path: Path
    name: str
    benchmark: str
    split: str | None
    model: str


@dataclass(frozen=True)
class ImportedScores:
    """How many scores were imported for one model and benchmark.

    The benchmark has ``n_pairs`` pairs. Of these, ``n_scored`` have a score and ``n_missing`` have
    none. ``n_rejected`` counts unused rows of the files. For logs of lm-evaluation-harness,
    ``n_pairs`` and ``n_missing`` don't count unnatural pairs without a score.
    """

    model: str
    benchmark: str
    n_pairs: int
    n_scored: int
    n_rejected: int
    n_missing: int
    files: tuple[str, ...]


def import_scores(
    store: Store, directory: Path, run_id: str, samples: Mapping[str, str] | None = None
) -> list[ImportedScores]:
    """Read every score file under a directory, replacing earlier imports.

    Writes ``model``, ``pair_score`` and ``reject`` (stage `import`), with a commit per benchmark.
    After an error, earlier commits stay.

    A sample of a benchmark's pairs may be stored as a benchmark of its own. ``samples`` maps the
    benchmark's name to the sample's name. If ``samples`` is given, only scores of sampled pairs are
    imported, unused rows aren't stored as rejects, and models that have scores are skipped.

    Raises what ``score_files`` and ``check_imported`` raise. Raises ``BadInput`` if a file can't
    be read to its end or lacks a column, or if its rows and its file name name different models.
    """
    files = score_files(directory)
    if samples is not None:
        files = [
            replace(file, benchmark=sample)
            for file in files
            if (sample := samples.get(file.benchmark))
            and not store.units("pair_score", benchmark=sample, model_key=_key(file.model))
        ]
    check_imported(store, [file.benchmark for file in files])
    done = []
    for benchmark, of_benchmark in groupby(files, lambda file: file.benchmark):
        pairs = store.read("benchmark_pair", benchmark=benchmark).to_pylist()
        with store.transaction(run_id, f"scores of {benchmark}"):
            for _, of_model in groupby(of_benchmark, lambda file: file.model):
                is_sample = samples is not None
                done.append(_import_model(store, pairs, list(of_model), run_id, is_sample))
    return done


def _key(model: str) -> str:
    return short_hash({"backend": "released", "model": model})


def _import_model(
    store: Store, pairs: Sequence[Row], files: Sequence[ScoreFile], run_id: str, is_sample: bool
) -> ImportedScores:
    model, benchmark = files[0].model, files[0].benchmark
    by_pair, unused = _gather(files, pairs)
    rejects = [] if is_sample else unused
    key = _key(model)
    # ``n_parameters`` is only known for UnStereoEval's models.
    more = {"text_form": "released", "n_parameters": N_PARAMETERS.get(model), **described(model)}
    identity = {"model_key": key, "backend": "released", "model": model, **more}
    scores = [
        {"pair_id": pair_id, "model": model, **dict(zip(_SCORES, figures, strict=True))}
        for pair_id, figures in sorted(by_pair.items())
    ]
    store.publish("model", [identity], unit=key, run_id=run_id)
    store.replace("pair_score", scores, {"benchmark": benchmark, "model_key": key}, run_id)
    partition = {"stage": "import", "subject": f"{model}/{benchmark}"}
    store.replace("reject", rejects, partition, run_id)
    counts = len(pairs), len(by_pair), len(rejects), len(pairs) - len(by_pair)
    return ImportedScores(model, benchmark, *counts, tuple(file.name for file in files))


def score_files(directory: Path) -> list[ScoreFile]:
    """Find the score files in a directory and its folders, sorted by benchmark, model and split.

    Raises ``BadInput`` if there are no files, if a path doesn't show the model or the benchmark, or
    if two files have the same benchmark, model and split.
    """
    files = []
    for path in sorted({*directory.rglob(_PATTERN), *directory.rglob(f"{_PATTERN}.gz")}):
        if (match := _NAME.fullmatch(path.name)) is None:
            raise BadInput(f"{path}", "its name is not STEM__scores__MODEL.csv")
        name = path.relative_to(directory).as_posix()
        of_file = *_benchmark(path, match["stem"]), model_id(match["model"])
        files.append(ScoreFile(path, name, *of_file))
    if not files:
        raise BadInput(f"{directory}", f"holds no files {_PATTERN}[.gz]")

    def place(file: ScoreFile) -> tuple[str, str, str]:
        return file.benchmark, file.model.lower(), file.split or ""

    files.sort(key=place)
    for first, second in pairwise(files):
        if place(first) == place(second):
            what = " ".join(filter(None, (second.model, second.benchmark, second.split)))
            raise BadInput(f"{first.path} and {second.path}", f"both hold {what}", "keep one")
    return files


def _benchmark(path: Path, stem: str) -> tuple[str, str | None]:
    """Return a file's benchmark and split. The file's name or folder shows the benchmark."""
    if stem.lower() in _STEMS:
        return _STEMS[stem.lower()]
    for folder in reversed(path.resolve().parent.parts):
        if folder.lower() in _FOLDERS:
            return _FOLDERS[folder.lower()], None
    fix = f"put it into a folder {', '.join(_FOLDERS)}, or begin its name with {', '.join(_STEMS)}"
    raise BadInput(f"{path}", "neither its folder nor its name tells its benchmark", fix)


#: The 28 models of UnStereoEval (Belem et al., ICLR 2024): hub id -> number of parameters.
N_PARAMETERS = {entry.name or entry.id: entry.n_parameters for entry in load("unstereoeval")}

_BY_LOWER = {hub_id.lower(): hub_id for hub_id in N_PARAMETERS}
# The authors' files name a Llama 2 model by a local path, such as one in the Hugging Face cache.
_SIZE = re.compile(r"(?:^|/)llama-2/hf_models/(7b|13b|70b)$")
_SNAPSHOT = re.compile(r"(?:^|/)models--([^/]+?)--([^/]+)/snapshots/[0-9a-f]+$")


def model_id(name: str) -> str:
    """Return a model's id on the Hugging Face Hub, from its name in a released file or file name.

    ``__`` is read as ``/``. The 28 released models are recognised in upper or lower case, and if a
    local path ends in their name. Any other name is returned unchanged, apart from ``__``.

    >>> model_id("EleutherAI__pythia-70m"), model_id("allenai/olmo-1b")
    ('EleutherAI/pythia-70m', 'allenai/OLMo-1B')
    >>> model_id("__extra__ucinlp1__llama-2__hf_models__7B")
    'meta-llama/Llama-2-7b-hf'
    >>> model_id("/cache/models--meta-llama--Llama-2-70b-hf/snapshots/90052941a64de020")
    'meta-llama/Llama-2-70b-hf'
    >>> model_id("someone__pythia-70m")
    'someone/pythia-70m'
    """
    path = name.strip().replace("__", "/")
    lower = path.lower()
    if size := _SIZE.search(lower):
        return f"meta-llama/Llama-2-{size[1]}-hf"
    if snapshot := _SNAPSHOT.search(lower):
        lower = f"{snapshot[1]}/{snapshot[2]}"
    return _BY_LOWER.get("/".join(lower.split("/")[-2:]), path)


def _scores(file: ScoreFile, row: Record) -> tuple[Any, ...] | str:
    """Return a row's values for ``_SCORES``, or the reason why it can't be used.

    Raises ``BadInput`` if the model in the row isn't the model in the file name.
    """
    fields = row.fields
    name = fields.get("model")
    if name is not None and model_id(name).lower() != file.model.lower():
        difference = f"its model is {name!r}, its file name says {file.model}"
        fix = "rename the file or correct the row"
        raise BadInput(f"{file.path}, row {row.number}", difference, fix)
    logprobs = []
    for column in _LOGPROBS:
        logprobs.append(logprob(fields[column]))
        if logprobs[-1] is None:
            return f"{column} is {fields[column]!r}, expected a finite number, 0 or less"
    n_tokens = []
    for column in _N_TOKENS:
        text = fields[column]
        n_tokens.append(int(text) if text.isascii() and text.isdigit() else 0)
        if not n_tokens[-1]:
            return f"{column} is {fields[column]!r}, expected a whole number, 1 or more"
    identity, problem = _text_id(*map(fields.__getitem__, _SENTENCES))
    return problem or (*logprobs, *n_tokens, identity)


# Cached, since all models score the same sentences.
@lru_cache(maxsize=1 << 15)
def _text_id(template: str, sentence_a: str, sentence_b: str) -> tuple[str, str | None]:
    """Return the ``text_id`` of a row's two sentences, and the row's problem if there is one.

    Sentence a must be the template with female pronouns. Sentence b must have the male pronouns. If
    the sentences were swapped, every log ratio would have the wrong sign.
    """
    if problem := template_problem(template):
        return "", problem
    if not _is_filled(template, sentence_a, "f"):
        return "", "F_template is not the template with its female pronouns"
    if not _is_filled(template, sentence_b, "m"):
        return "", "M_template is not the template with its male pronouns"
    return text_id({"sentence_a": sentence_a, "sentence_b": sentence_b}), None


def _is_filled(template: str, sentence: str, gender: Gender) -> bool:
    """Return True if a sentence is the filled template, apart from case, punctuation and spaces.

    Released sentences are in lower case after the first letter, and some lost their quotes.

    >>> _is_filled("'{pronoun} met the CEO.'", "He met the ceo.", "m")
    True
    """
    filled, stored = (_SEPARATORS.sub("", t.lower()) for t in (fill(template, gender), sentence))
    return filled == stored


def _gather(
    files: Iterable[ScoreFile], pairs: Sequence[Mapping[str, Any]]
) -> tuple[dict[str, tuple[Any, ...]], list[Row]]:
    """Map the id of each scored pair to its values for ``_SCORES``; also return the rejects.

    ``files`` are the parts of one benchmark, and ``pairs`` are all its pairs. Each unused row gives
    a reject. Raises what ``_scores`` raises. Raises ``BadInput`` if a file can't be read to its end
    or lacks a column.
    """
    by_pair: dict[str, tuple[Any, ...]] = {}
    rejects: list[Row] = []
    is_judged = any(pair["is_natural"] is not None for pair in pairs)
    columns = (*_SENTENCES, "word", *_LOGPROBS, *_N_TOKENS, *(["is_natural"] if is_judged else []))
    in_order = sorted(pairs, key=lambda pair: (pair["source_file"], pair["source_row"]))
    for file in files:
        lines: dict[_Key, list[_Line]] = {}
        unused: list[tuple[int, str, str]] = []
        content = read_text(file.path)
        rows = list(records_of(content, str(file.path), columns))
        if rows and not content.endswith(("\n", "\r")):  # the last row may be cut off
            rows[-1] = rows[-1]._replace(problem=rows[-1].problem or _CUT)
        for row in rows:
            values = row.problem or _scores(file, row)
            if isinstance(values, str):
                unused.append((row.number, values, row.fields.get("template", "")))
                continue
            is_natural = truth(row.fields["is_natural"]) if is_judged else None
            key = row.fields["template"], row.fields["word"] or None, is_natural
            lines.setdefault(key, []).append((row.number, values))
        ids: dict[_Key, list[str]] = {}
        for pair in in_order:
            if file.split in (None, pair["split"]):
                key = pair["template"], pair["word"], pair["is_natural"]
                ids.setdefault(key, []).append(pair["pair_id"])
        for wanted, group in lines.items():
            places = ids.get(wanted, ())
            used, reason = _used_lines(group, len(places))
            if not places:
                reason = "no pair of the benchmark has this template, word and is_natural"
            by_pair.update(zip(places, (values for _, values in used), strict=False))
            unused += [(number, reason, wanted[0]) for number, _ in group[len(used) :]]
        for number, reason, template in unused:
            source = {"source_file": file.name, "source_row": number}
            rejects.append(rejected(source, reason, template))
    return by_pair, rejects


def _used_lines(lines: list[_Line], n_places: int) -> tuple[list[_Line], str]:
    """Return the rows to use for ``n_places`` identical pairs, and why other rows aren't used.

    If there are more rows than pairs, the first rows are used. But if the rows have different
    scores, no row is used.

    >>> _used_lines([(1, (-1,)), (2, (-1,))], 1)
    ([(1, (-1,))], 'repeats row 1, and the benchmark holds such a pair 1 time(s)')
    """
    holds = f"the benchmark holds such a pair {n_places} time(s)"
    if len(lines) <= n_places or len({values for _, values in lines}) == 1:
        return lines[:n_places], f"repeats row {lines[0][0]}, and {holds}"
    rows = ", ".join(str(number) for number, _ in lines[:5])
    return [], f"rows {rows} have different scores for one pair, and {holds}"


def logprob(text: str) -> float | None:
    """Parse a log-probability; return ``None`` unless it is a finite number, 0 or less.

    >>> logprob("-3.5"), logprob("nan"), logprob("1"), logprob("")
    (-3.5, None, None, None)
    """
    try:
        value = float(text)
    except ValueError:
        return None
    return value if math.isfinite(value) and value <= 0 else None
