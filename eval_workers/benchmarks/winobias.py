"""WinoBias (Zhao et al., NAACL 2018): 1,586 templates of two occupations and pronouns.

The development and test parts together, as the published figures use them. A template comes from a
sentence that was released as pro- or anti-stereotypical with its own pronoun; the pair holds both
genders, and ``stereotype`` says what the released sentence was.
"""

from __future__ import annotations

from pathlib import Path

from eval_workers.benchmarks import Parsed
from eval_workers.benchmarks._released import Record, index_id, locate, records, truth
from warehouse.errors import BadInput, UsageProblem

NAMES = ("winobias",)
DESCRIPTION = "WinoBias: two occupations and a pronoun, development and test parts"
DEFAULT_LOCATION = "unstereo-eval/data/datasets/raw"

_SPLITS = ("dev", "test")
_INDEX = ""  # the released tables' index column has no name
_COLUMNS = (_INDEX, "word", "template", "stereotype")


def read(name: str, source: Path | None) -> Parsed:
    """The pairs of both parts, from a directory that holds the two released tables.

    41 released templates keep the square brackets that mark a second mention of the same person
    in WinoBias' own files; they stay, as the published scores were made with them.
    """
    if source is None:
        raise UsageProblem(f"benchmark {name}", "needs its released tables", "give --source PATH")
    if not source.is_dir():
        problem = f"{source} is one file, expected a directory with a table each of dev and test"
        raise BadInput(f"benchmark {name}", problem)
    parsed = Parsed(name)
    for split in _SPLITS:
        path = locate(source, f"coref__Winobias__templates.{split}")
        for record in records(path, _COLUMNS):
            _add(parsed, split, path.name, record)
    return parsed


def _add(parsed: Parsed, split: str, file: str, record: Record) -> None:
    fields = record.fields
    problem = record.problem
    pro = truth(fields.get("stereotype", ""))
    if problem is None and pro is None:
        problem = f"stereotype is {fields['stereotype']!r}, expected True or False"
    if problem:
        parsed.reject(file, record.number, problem, fields.get("template", ""))
        return
    parsed.add(
        pair_id=index_id(f"{split}-", fields[_INDEX]),
        template=fields["template"],
        word=fields["word"] or None,
        split=split,
        stereotype="pro" if pro else "anti",
        source_file=file,
        source_row=record.number,
    )
