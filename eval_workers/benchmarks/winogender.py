"""Winogender schemas (Rudinger et al., NAACL 2018): 240 templates about 60 occupations.

Read from UnStereoEval's released table, or from the schemas' own ``templates.tsv`` (120 templates,
each with the participant named and with "someone" in its place).
"""

from __future__ import annotations

from pathlib import Path

from eval_workers.benchmarks import Parsed
from eval_workers.benchmarks._released import locate, records
from warehouse.errors import UsageProblem

NAMES = ("winogender",)
DESCRIPTION = "Winogender: one pronoun, an occupation and a participant"
DEFAULT_LOCATION = "unstereo-eval/data/datasets/raw"

_STEM = "coref__Winogender__templates"


def read(name: str, source: Path | None) -> Parsed:
    """The pairs, from a directory with a released table or one table.

    The identifier is the schema's own: occupation, participant (or ``someone``) and answer.

    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "table.csv"
    >>> _ = path.write_text("example_id,word,template\\nc.guest.1,guest,The cook saw {pronoun2}.")
    >>> [(p["pair_id"], p["sentence_f"]) for p in read("winogender", path).pairs]
    [('c.guest.1', 'The cook saw her.')]
    """
    if source is None:
        raise UsageProblem(f"benchmark {name}", "needs its released table", "give --source PATH")
    path = locate(source, _STEM)
    parsed = Parsed(name)
    for record in records(path, ("example_id", "word", "template")):
        fields = record.fields
        if record.problem:
            parsed.reject(path.name, record.number, record.problem, fields.get("template", ""))
            continue
        parsed.add(
            pair_id=fields["example_id"],
            template=fields["template"],
            word=fields["word"] or None,
            source_file=path.name,
            source_row=record.number,
        )
    return parsed
