"""Imports results that others released: scores of pairs, and the MaxPMI of pairs.

Every row of a released file becomes a row in ``reject`` or in a table of results. If a pair of the
benchmark has no usable row, it counts as missing.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any, TypeAlias

from plumbline.eval_workers.models.model_texts import described
from plumbline.eval_workers.pairs.pronouns.pronoun_templates import Gender, fill, template_problem
from plumbline.eval_workers.pairs.released.released_files import (
    MAX_PMI,
    N_PARAMETERS,
    SCORES,
    ReleasedFile,
    find_released,
    grouped,
    model_id,
)
from plumbline.eval_workers.scoring.pair_scores import check_imported, text_id
from plumbline.warehouse.errors import BadInput
from plumbline.warehouse.input.input_rows import Record, read_text, records_of, rejected, truth
from plumbline.warehouse.storage.store import Store

Row: TypeAlias = "dict[str, Any]"
#: A function that takes a well-formed row and returns its figures, or the problem with the row.
Figures: TypeAlias = "Callable[[ReleasedFile, Record], tuple[Any, ...] | str]"
#: Template, then word and ``is_natural``, each ``None`` unless both table and benchmark have it.
_Key: TypeAlias = "tuple[str, object, object]"
#: A row's number in its file, and its figures.
_Line: TypeAlias = "tuple[Any, tuple[Any, ...]]"
_OPTIONAL = ("word", "is_natural")
_CUT = "the file ends in this row without a line end: it may be cut short"

_LOGPROBS = ("F_logprob", "M_logprob")
_N_TOKENS = ("F_num_tokens", "M_num_tokens")
_SENTENCES = ("template", "F_template", "M_template")
#: Columns of ``pair_score`` that a row gives.
_SCORES = ("logprob_a_nats", "logprob_b_nats", "n_tokens_a", "n_tokens_b", "text_id")
_SEPARATORS = re.compile(r"[\W_]+")

_MAX_PMI, _UNDEFINED = "max_gender_pmi", "max_gender_pmi_invalid"
_CONTRAST = "she/he"


@dataclass(frozen=True)
class ImportedScores:
    """The outcome for one model and benchmark: ``n_pairs = n_scored + n_missing``.

    ``n_pairs`` counts the benchmark's pairs, ``n_missing`` the pairs without a score, and
    ``n_rejected`` the unused rows. Imports of harness logs (``harness_logs``) have such outcomes
    too; there, an unnatural pair counts only if it has a score.
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

    ``samples`` maps the name of a benchmark to the name of a sample of it. If given, only scores of
    the samples' pairs are read, unless they were read before, and other lines don't become rejects.
    Writes ``model``, ``pair_score`` and ``reject`` (stage `import`), each benchmark in one commit;
    after an error, benchmarks that were already imported stay.

    Raises what ``find_released`` and ``check_imported`` raise. Raises ``BadInput`` if a file can't
    be read to its end, lacks a column, or names a different model than its file name does.
    """
    files = find_released(directory, SCORES)
    if samples is not None:
        files = [
            replace(file, benchmark=sample)
            for file in files
            if (sample := samples.get(file.benchmark))
            and not store.units("pair_score", benchmark=sample, model_key=_key(file.model))
        ]
    check_imported(store, [file.benchmark for file in files])
    done = []
    for benchmark, benchmark_files in grouped(files, lambda f: f.benchmark).items():
        pairs = store.read("benchmark_pair", benchmark=benchmark).to_pylist()
        with store.transaction(run_id, f"scores of {benchmark}"):
            for model_files in grouped(benchmark_files, lambda f: f.model).values():
                is_sample = samples is not None
                done.append(_import_model(store, pairs, model_files, run_id, is_sample))
    return done


def _key(model: str) -> str:
    """Return the key of the released scores of a model."""
    names = {"backend": "released", "model": model}
    return hashlib.sha256(json.dumps(names, sort_keys=True).encode()).hexdigest()[:16]


def _import_model(
    store: Store,
    pairs: Sequence[Row],
    files: Sequence[ReleasedFile],
    run_id: str,
    is_sample: bool,
) -> ImportedScores:
    """Import one model's files for one benchmark; each file holds a part of the benchmark."""
    model, benchmark = files[0].model, files[0].benchmark
    columns = (*_SENTENCES, *_LOGPROBS, *_N_TOKENS)
    by_pair, rejects = gather(files, pairs, columns, _scores, f"{model}/{benchmark}", run_id)
    rejects = [] if is_sample else rejects
    key = _key(model)
    # ``n_parameters`` is known for UnStereoEval's models.
    more = {"text_form": "released", "n_parameters": N_PARAMETERS.get(model), **described(model)}
    identity = {"model_key": key, "backend": "released", "model": model, **more, "run_id": run_id}
    common = {"model_key": key, "model": model, "benchmark": benchmark, "run_id": run_id}
    scores = [
        {"pair_id": pair_id, **common, **dict(zip(_SCORES, figures, strict=True))}
        for pair_id, figures in sorted(by_pair.items())
    ]
    store.publish("model", [identity], unit=key, run_id=run_id)
    store.replace("pair_score", scores, {"benchmark": benchmark, "model_key": key}, run_id)
    partition = {"stage": "import", "subject": f"{model}/{benchmark}"}
    store.replace("reject", rejects, partition, run_id)
    counts = len(pairs), len(by_pair), len(rejects), len(pairs) - len(by_pair)
    return ImportedScores(model, benchmark, *counts, tuple(file.name for file in files))


def import_max_pmi(store: Store, directory: Path, corpus: str, run_id: str) -> None:
    """Read every ``*-no-maxpmi-constraint.csv[.gz]`` under a directory as MaxPMI of ``corpus``.

    Writes ``pair_association`` (replaces rows of contrast `she/he`; other contrasts stay) and
    ``reject`` (stage `import`). Columns that the files lack are NULL: the deciding word, the sums
    and the word counts. The released sets leave out unnatural pairs. Raises what ``find_released``,
    ``check_imported`` and ``gather`` raise, and ``BadInput`` if a benchmark has no usable row.
    """
    files = find_released(directory, MAX_PMI)
    check_imported(store, [file.benchmark for file in files])
    for benchmark, parts in grouped(files, lambda f: f.benchmark).items():
        subject = f"{corpus}/{benchmark}"
        pairs = store.read("benchmark_pair", benchmark=benchmark).to_pylist()
        columns = ("template", _MAX_PMI)
        by_pair, rejects = gather(parts, pairs, columns, _max_pmi, subject, run_id)
        if not by_pair:
            first = f"; the first: {rejects[0]['reason']}" if rejects else ""
            raise BadInput(f"{parts[0].path}", f"no usable row, {len(rejects)} rejected{first}")
        common = {"corpus": corpus, "contrast": _CONTRAST, "benchmark": benchmark}
        rows = [
            {**common, "pair_id": pair_id, "max_pmi_nats": max_pmi_nats}
            for pair_id, (max_pmi_nats,) in sorted(by_pair.items())
        ]
        with store.transaction(run_id, f"MaxPMI of {subject}"):
            store.publish("pair_association", rows, unit=_CONTRAST, run_id=run_id)
            store.replace("reject", rejects, {"stage": "import", "subject": subject}, run_id)


def _max_pmi(file: ReleasedFile, row: Record) -> tuple[float | None] | str:
    """Return MaxPMI in nats (``None`` if the file calls it undefined), or the row's problem."""
    text = row.fields[_MAX_PMI]
    value = finite(text)
    if value is not None or truth(row.fields.get(_UNDEFINED, "")):
        return (value,)
    return f"{_MAX_PMI} is {text!r}, expected a number, or {_UNDEFINED} to be True"


def _scores(file: ReleasedFile, row: Record) -> tuple[Any, ...] | str:
    """Return the row's ``_SCORES``, or its problem; ``BadInput`` if it names another model."""
    fields = row.fields
    name = fields.get("model")
    if name is not None and _model_id(name).lower() != file.model.lower():
        difference = f"its model is {name!r}, its file name says {file.model}"
        fix = "rename the file or mend the row"
        raise BadInput(f"{file.path}, row {row.number}", difference, fix)
    logprobs = []
    for column in _LOGPROBS:
        logprobs.append(value := finite(fields[column]))
        if value is None or value > 0:
            return f"{column} is {fields[column]!r}, expected a finite number, 0 or less"
    n_tokens = []
    for column in _N_TOKENS:
        text = fields[column]
        n_tokens.append(int(text) if text.isascii() and text.isdigit() else 0)
        if not n_tokens[-1]:
            return f"{column} is {fields[column]!r}, expected a whole number, 1 or more"
    identity, problem = _text_id(*map(fields.__getitem__, _SENTENCES))
    return problem or (*logprobs, *n_tokens, identity)


_model_id = lru_cache(maxsize=1 << 10)(model_id)  # a file's rows hold one name


# Cached, since all models score the same sentences.
@lru_cache(maxsize=1 << 15)
def _text_id(template: str, sentence_a: str, sentence_b: str) -> tuple[str, str | None]:
    """Return the ``text_id`` of a row's two sentences, and the problem with them, if any.

    Each sentence must be the template filled with its column's pronouns: exchanged columns would
    change the sign of every log ratio.
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


def gather(
    files: Iterable[ReleasedFile],
    pairs: Sequence[Mapping[str, Any]],
    columns: tuple[str, ...],
    figures: Figures,
    subject: str,
    run_id: str,
) -> tuple[dict[str, tuple[Any, ...]], list[Row]]:
    """Return each pair's figures in the files, by pair id, and a reject for each unused line.

    ``files`` are the parts of one benchmark and ``pairs`` its rows; ``subject`` and ``run_id`` go
    into the rejects. Raises ``BadInput`` if a file can't be read to its end or lacks one of
    ``columns``, and what ``figures`` raises.
    """
    by_pair: dict[str, tuple[Any, ...]] = {}
    rejects: list[Row] = []
    common = {"stage": "import", "subject": subject, "run_id": run_id}
    known = {name for name in _OPTIONAL if any(pair[name] is not None for pair in pairs)}
    in_order = sorted(pairs, key=lambda pair: (pair["source_file"], pair["source_row"]))
    for file in files:
        lines: dict[_Key, list[_Line]] = {}
        unused: list[tuple[int, str, str]] = []
        shared = known
        content = read_text(file.path)
        rows = list(records_of(content, str(file.path), columns))
        if rows and not content.endswith(("\n", "\r")):  # a cut number still reads like a number
            rows[-1] = rows[-1]._replace(problem=rows[-1].problem or _CUT)
        for row in rows:
            values = row.problem or figures(file, row)
            if isinstance(values, str):
                unused.append((row.number, values, row.fields.get("template", "")))
                continue
            shared = known & row.fields.keys()
            word = (row.fields["word"] or None) if "word" in shared else None
            natural = truth(row.fields["is_natural"]) if "is_natural" in shared else None
            key: _Key = (row.fields["template"], word, natural)
            lines.setdefault(key, []).append((row.number, values))
        ids: dict[_Key, list[str]] = {}
        for pair in in_order:
            if file.split in (None, pair["split"]):
                optional = (pair[name] if name in shared else None for name in _OPTIONAL)
                ids.setdefault((pair["template"], *optional), []).append(pair["pair_id"])
        for wanted, group in lines.items():
            places = ids.get(wanted, ())
            used, reason = _used_lines(group, len(places))
            if not places:
                reason = "no pair of the benchmark has this template, word and verdict"
            by_pair.update(zip(places, (values for _, values in used), strict=False))
            unused += [(number, reason, wanted[0]) for number, _ in group[len(used) :]]
        for number, reason, template in unused:
            source = {"source_file": file.name, "source_row": number}
            rejects.append({**common, **rejected(source, reason, template)})
    return by_pair, rejects


def _used_lines(lines: list[_Line], n_places: int) -> tuple[list[_Line], str]:
    """Return the lines to use for ``n_places`` equal pairs, and why the other lines are unused.

    If there are more lines than pairs, the surplus is unused; if the lines' figures also differ,
    all lines are unused.

    >>> _used_lines([(1, (-1,)), (2, (-1,))], 1)
    ([(1, (-1,))], 'repeats row 1, and the benchmark holds such a pair 1 time(s)')
    """
    holds = f"the benchmark holds such a pair {n_places} time(s)"
    if len(lines) <= n_places or len({values for _, values in lines}) == 1:
        return lines[:n_places], f"repeats row {lines[0][0]}, and {holds}"
    rows = ", ".join(str(number) for number, _ in lines[:5])
    return [], f"rows {rows} are of one pair with different figures, and {holds}"


def finite(text: str) -> float | None:
    """Return the number in a field; ``None`` if the text isn't a finite number.

    >>> finite("-3.5"), finite("nan"), finite("")
    (-3.5, None, None)
    """
    try:
        value = float(text)
    except ValueError:
        return None
    return value if math.isfinite(value) else None
