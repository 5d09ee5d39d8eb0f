"""UnStereoEval's own sets, USE-5, USE-10 and USE-20 (Belem et al., ICLR 2024).

Sentences of about 5, 10 and 20 words that a language model wrote around a seed word. Every
released row is kept with its verdict: ``is_natural`` is true where the sentence was judged likely
with both pronouns. Metrics use only rows where it is true (4,405, 4,740 and 4,839).
"""

from __future__ import annotations

from pathlib import Path

from plumbline.eval_workers.pairs.benchmarks import Parsed
from plumbline.eval_workers.pairs.benchmarks.own.parsed_pairs import RELEASED, add_released

NAMES = ("use-5", "use-10", "use-20")
DESCRIPTION = "UnStereoEval: generated sentences around a neutral seed word, with naturalness"
DEFAULT_LOCATION = RELEASED


def read(name: str, source: Path | None) -> Parsed:
    """The pairs of one set, from a directory of released tables or one table.

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
