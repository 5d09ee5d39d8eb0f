"""Winogender schemas (Rudinger et al., NAACL 2018): 240 templates about 60 occupations.

They are read from UnStereoEval's released table. A schema has two kinds of templates: one names the
participant, the other says "someone" instead.
"""

from __future__ import annotations

from pathlib import Path

from plumbline.eval_workers.pairs.benchmarks import Parsed
from plumbline.eval_workers.pairs.benchmarks.own.parsed_pairs import RELEASED, add_released

NAMES = ("winogender",)
DESCRIPTION = "Winogender: one pronoun, an occupation and a participant"
DEFAULT_LOCATION = RELEASED


def read(name: str, source: Path | None) -> Parsed:
    """Return the pairs; ``source`` is the released table or the directory that holds it.

    Ids are those of the release: occupation, participant (or ``someone``) and answer. ``word`` is
    the occupation or the participant, whichever the pronoun refers to. The two clusters of a pair
    are this word and the schema's occupation.

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
