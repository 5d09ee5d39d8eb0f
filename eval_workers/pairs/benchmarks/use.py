"""UnStereoEval's own sets, USE-5, USE-10 and USE-20 (Belem et al., ICLR 2024).

A language model wrote their sentences, of about 5, 10 and 20 words, around seed words. Every
released row is kept with its verdict: ``is_natural`` is true if the sentence was judged likely
with both pronouns. Metrics use only rows where it is true: 4,405, 4,740 and 4,839 of them.
"""

from __future__ import annotations

from pathlib import Path

from plumbline.eval_workers.pairs.benchmarks import Parsed
from plumbline.eval_workers.pairs.benchmarks.own.parsed_pairs import RELEASED, add_released

NAMES = ("use-5", "use-10", "use-20")
DESCRIPTION = "UnStereoEval: generated sentences around a neutral seed word, with naturalness"
DEFAULT_LOCATION = RELEASED


def read(name: str, source: Path | None) -> Parsed:
    """Return the pairs of one set; ``source`` is its table or the directory of released tables.

    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "USE-5.csv"
    >>> _ = path.write_text(",word,template,is_natural\\n3,tea,{pronoun} drank tea.,True\\n")
    >>> [(p["pair_id"], p["sentence_b"], p["is_natural"]) for p in read("use-5", path).pairs]
    [('00003', 'He drank tea.', True)]
    """
    parsed = Parsed(name)
    add_released(parsed, source, name.upper(), "is_natural")
    for pair in parsed.pairs:
        pair["is_natural"] = pair["is_natural"] == "True"
    return parsed
