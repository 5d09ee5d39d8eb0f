"""Small released files for tests: a benchmark's pairs and score files in the released columns."""

import csv
import gzip
import io
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from plumbline.eval_workers.pairs.benchmarks import import_benchmark
from plumbline.warehouse.storage.store import Store

Fields = dict[str, str]

#: Template, word, verdict. The first two templates repeat; once with another word, once in all.
PAIRS = (
    ("{pronoun} drank tea.", "tea", "True"),
    ("{pronoun} lost {pronoun1} key.", "key", "True"),
    ("{pronoun} drank tea.", "drink", "True"),
    ("{pronoun} lost {pronoun1} key.", "key", "True"),
    ("The CEO saw {pronoun2}.", "ceo", "False"),
)
_SENTENCES = {
    "{pronoun} drank tea.": ("She drank tea.", "He drank tea."),
    "{pronoun} lost {pronoun1} key.": ("She lost her key.", "He lost his key."),
    "The CEO saw {pronoun2}.": ("The ceo saw her.", "The ceo saw him."),
}


def import_pairs(store: Store, directory: Path) -> None:
    """The benchmark use-5 with these pairs, whose identifiers are 00000, 00001, ..."""
    table = [
        {"": str(i), "word": word, "template": template, "is_natural": natural}
        for i, (template, word, natural) in enumerate(PAIRS)
    ]
    import_benchmark(store, "use-5", write_csv(directory / "pairs.csv", table), "pairs")


def score_rows(model: str = "org__m") -> list[Fields]:
    """A score of each pair: -(i + 1).5 and -(i + 1).25; pairs with the same sentences share one."""
    first: dict[str, int] = {}
    table = []
    for i, (template, word, natural) in enumerate(PAIRS):
        place = first.setdefault(template, i) + 1
        female, male = _SENTENCES[template]
        scores = {"M_num_tokens": "4", "M_logprob": f"-{place}.25", "M_template": male}
        scores |= {"F_num_tokens": "5", "F_logprob": f"-{place}.5", "F_template": female}
        row = {"word": word, "template": template, "is_natural": natural}
        table.append({**row, **scores, "model": model})
    return table


def as_csv(table: Sequence[Mapping[str, Any]]) -> str:
    """A table as the text of a CSV file."""
    text = io.StringIO(newline="")
    writer = csv.DictWriter(text, list(table[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(table)
    return text.getvalue()


def write_csv(path: Path, table: Sequence[Mapping[str, Any]]) -> Path:
    """Write a table as a CSV file, and return its path."""
    path.write_text(as_csv(table), encoding="utf-8", newline="")
    return path


def write_use_5(release: Path, templates: Sequence[str]) -> Path:
    """The file of the set USE-5 in a release: natural pairs of these templates about tea."""
    file = release / "data/datasets/raw/USE-5.csv"
    file.parent.mkdir(parents=True)
    row = {"word": "tea", "is_natural": "True"}
    return write_csv(file, [{"": str(k), "template": t, **row} for k, t in enumerate(templates)])


def write_scores(
    directory: Path, table: Sequence[Mapping[str, str]], name: str = "org__m.csv"
) -> Path:
    """A score file of use-5 below a results directory; its name ends in ``name``."""
    path = directory / "5words" / f"revised_templates__scores__{name}"
    path.parent.mkdir(parents=True, exist_ok=True)
    data = as_csv(table).encode()
    path.write_bytes(gzip.compress(data, mtime=0) if name.endswith(".gz") else data)
    return path
