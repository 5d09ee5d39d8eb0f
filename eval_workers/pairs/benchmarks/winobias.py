"""WinoBias (Zhao et al., NAACL 2018): 1,586 templates with two occupations and pronouns.

The templates are those of the development and test parts together, like the published figures, and
are read from UnStereoEval's released tables. In 41 templates a second pronoun for the same person
is in square brackets; they stay, since the published scores were computed with them.

A pair's two sentences have the pronouns of the two genders. The authors call a sentence pro- or
anti-stereotypical: ``direction`` names the sentence that follows the stereotype, and
``stereotype`` is `pro` or `anti` for the masculine sentence.
"""

from __future__ import annotations

import re
from pathlib import Path

from plumbline.eval_workers.pairs.benchmarks import Parsed
from plumbline.eval_workers.pairs.benchmarks.own.parsed_pairs import RELEASED, add_released
from plumbline.warehouse.errors import BadInput

NAMES = ("winobias",)
DESCRIPTION = "WinoBias: two occupations and a pronoun, development and test parts"
DEFAULT_LOCATION = RELEASED

_WORD = re.compile(r"[a-z]+")


def read(name: str, source: Path | None) -> Parsed:
    """Return the pairs of both parts, from a directory that holds the two released tables.

    A pair has up to two clusters: its ``word``, then words of its template that are the ``word`` of
    some pair.
    """
    if source and not source.is_dir():
        problem = f"{source} is a file, expected a directory with one table per part: dev, test"
        raise BadInput(f"benchmark {name}", problem)
    parsed = Parsed(name)
    for split in ("dev", "test"):
        stem = f"coref__Winobias__templates.{split}"
        add_released(parsed, source, stem, "stereotype", prefix=f"{split}-")
    occupations = {str(pair["word"]).lower() for pair in parsed.pairs if pair["word"]}
    for pair in parsed.pairs:
        is_pro = pair["stereotype"] == "True"
        pair["split"] = str(pair["pair_id"]).partition("-")[0]
        pair["stereotype"], pair["direction"] = ("pro", "b") if is_pro else ("anti", "a")
        words = _WORD.findall(str(pair["template"]).lower())
        named = [*filter(None, [pair["word"]]), *(w for w in words if w in occupations)]
        clusters = [f"occupation: {word}" for word in dict.fromkeys(named)]
        pair |= dict(zip(("cluster", "cluster_2"), clusters, strict=False))
    return parsed
