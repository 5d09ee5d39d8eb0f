"""Winogender schemas (Rudinger et al., NAACL 2018): 240 templates about 60 occupations.

They are read from UnStereoEval's released table, or from the authors' ``templates.tsv``. Each of
its 120 rows gives two templates: one names the participant, the other has "someone" instead.
"""

from __future__ import annotations

import re
from pathlib import Path

from plumbline.eval_workers.pairs.benchmarks import Parsed
from plumbline.eval_workers.pairs.benchmarks.own.parsed_pairs import RELEASED, located, usable

NAMES = ("winogender",)
DESCRIPTION = "Winogender: one pronoun, an occupation and a participant"
DEFAULT_LOCATION = RELEASED

_STEM = "coref__Winogender__templates"
_SCHEMAS = "templates.tsv"
_SCHEMA_COLUMNS = ("occupation(0)", "other-participant(1)", "answer", "sentence")
_PLACEHOLDERS = {
    "$NOM_PRONOUN": "{pronoun}",
    "$POSS_PRONOUN": "{pronoun1}",
    "$ACC_PRONOUN": "{pronoun2}",
}
_SOMEONE = re.compile(r"\b(the|an?) \$PARTICIPANT", re.IGNORECASE)


def read(name: str, source: Path | None) -> Parsed:
    """The pairs, from a directory with a released table, one table, or ``templates.tsv``.

    The identifier is the schema's own: occupation, participant (or ``someone``) and answer;
    ``word`` is the occupation or the participant, whichever the pronoun stands for.

    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "table.csv"
    >>> _ = path.write_text("example_id,word,template\\nc.guest.1,guest,The cook saw {pronoun2}.")
    >>> [(p["pair_id"], p["sentence_a"]) for p in read("winogender", path).pairs]
    [('c.guest.1', 'The cook saw her.')]
    """
    path = located(name, source, _STEM, _SCHEMAS)
    if path.suffix == ".tsv":
        return _read_schemas(name, path)
    parsed = Parsed(name)
    for record in usable(parsed, path, ("example_id", "word", "template"), {}):
        fields = record.fields
        parsed.add(
            pair_id=fields["example_id"],
            template=fields["template"],
            word=fields["word"] or None,
            **_clusters(fields["example_id"], fields["word"]),
            source_file=path.name,
            source_row=record.number,
        )
    return parsed


def _read_schemas(name: str, path: Path) -> Parsed:
    parsed = Parsed(name)
    answers = {"answer": ("0", "1")}
    options = {"excerpt": "sentence", "delimiter": "\t"}
    for record in usable(parsed, path, _SCHEMA_COLUMNS, answers, **options):
        occupation, participant, answer, sentence = (record.fields[c] for c in _SCHEMA_COLUMNS)
        for other in (participant, "someone"):
            pair_id, word = f"{occupation}.{other}.{answer}", (occupation, other)[int(answer)]
            parsed.add(
                pair_id=pair_id,
                template=_template(sentence, occupation, other),
                word=word,
                **_clusters(pair_id, word),
                source_file=path.name,
                source_row=record.number,
            )
    return parsed


def _clusters(identifier: str, word: str) -> dict[str, object]:
    """Clusters of a pair: its word, and the occupation of its schema; empty without a word."""
    occupation = identifier.partition(".")[0]
    return {"cluster": f"word: {word}", "cluster_2": f"schema: {occupation}"} if word else {}


def _template(sentence: str, occupation: str, participant: str) -> str:
    """A schema with its slots filled, except the pronoun, which becomes a placeholder.

    >>> _template("The $PARTICIPANT saw that $NOM_PRONOUN won.", "cook", "someone")
    'Someone saw that {pronoun} won.'
    """
    if participant == "someone":
        sentence = _SOMEONE.sub(lambda m: "Someone" if m[1][0] == "T" else "someone", sentence)
    for slot, text in _PLACEHOLDERS.items():
        sentence = sentence.replace(slot, text)
    return sentence.replace("$OCCUPATION", occupation).replace("$PARTICIPANT", participant)
