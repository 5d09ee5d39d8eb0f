"""Winogender schemas (Rudinger et al., NAACL 2018): 240 templates about 60 occupations.

They are read from UnStereoEval's released table. Of the two templates of a schema one names the
participant, the other has "someone" instead.
"""

from __future__ import annotations

from pathlib import Path

from plumbline.eval_workers.pairs.benchmarks import Parsed
from plumbline.eval_workers.pairs.benchmarks.own.parsed_pairs import RELEASED, add_released

NAMES = ("winogender",)
DESCRIPTION = "Winogender: one pronoun, an occupation and a participant"
DEFAULT_LOCATION = RELEASED


def read(name: str, source: Path | None) -> Parsed:
    """The pairs, from a directory with the released table, or the table.

    The identifier is the schema's own: occupation, participant (or ``someone``) and answer;
    ``word`` is the occupation or the participant, whichever the pronoun stands for. Clusters are
    the word, and the occupation of the schema.

    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "table.csv"
    >>> _ = path.write_text("example_id,word,template\\nc.guest.1,guest,The cook saw {pronoun2}.")
    >>> [(p["pair_id"], p["sentence_a"]) for p in read("winogender", path).pairs]
    [('c.guest.1', 'The cook saw her.')]
    """
    parsed = Parsed(name)
    add_released(parsed, source, "coref__Winogender__templates", key="example_id")
    for pair in parsed.pairs:
        if pair["word"]:
            occupation = str(pair["pair_id"]).partition(".")[0]
            pair["cluster"] = f"word: {pair['word']}"
            pair["cluster_2"] = f"schema: {occupation}"
    return parsed
