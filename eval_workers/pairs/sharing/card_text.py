"""Text of a dataset card, Markdown with YAML front matter, from figures and facts."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib import resources
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from huggingface_hub import DatasetCardData

#: Name of the file that holds the pairs.
DATA = "data.parquet"
_HUB_TYPES = {"string": "string", "bool": "bool", "double": "float64", "int64": "int64"}
#: Limits that hold for any benchmark of pairs.
LIMITS = (
    "The groups of its pairs are compared; no others are in it.",
    "Pairs made for one word are alike: figures of few words are less sure than their number of "
    "pairs says.",
    "A model that was trained on these sentences can't be judged by them.",
)
#: Values of a card's language that count as English; ``""`` is unknown.
_ENGLISH = ("", "en")
#: The groups whose pairs differ in their pronouns.
GENDERS = "female/male"
_SIZES = ("n<1K", "1K<n<10K", "10K<n<100K", "100K<n<1M", "1M<n<10M")
#: Label, and the columns of `sql/benchmarks/statistics.sql` with its median and largest value.
_SPREADS = (
    ("Pronouns in a sentence", "pronouns"),
    ("Position of the first pronoun (words before it)", "first_position"),
    ("Position of the last pronoun (words before it)", "last_position"),
    ("Length in words", "words"),
    ("Length in tokens, marks counted and pronouns not", "tokens"),
)


@dataclass(frozen=True)
class DatasetCard:
    """Content of a card.

    Attributes:
        licence: identifier as dataset hubs know it; `unknown` asks the reader to fill it in.
        columns: name, Arrow type and meaning of each column of the data.
        example: one row.
        figures: the row of `sql/benchmarks/statistics.sql`, and `seed_delta`.
        made: facts about how the pairs were made, in order; ``None`` for unknown ones.
        groups: pairs of groups that are compared, as `female/male`.
        language: code of the sentences' language; empty if unknown.
        n_bytes: bytes of these rows in memory.
        power: sentences on the smallest effect that the benchmark can find.
        citation: BibTeX entry of its paper; empty if unknown.
        stored: facts of `benchmark_fact`.
    """

    name: str
    description: str
    licence: str
    columns: Sequence[tuple[str, str, str]]
    example: Mapping[str, object]
    figures: Mapping[str, Any]
    made: Mapping[str, object]
    groups: Sequence[str] = (GENDERS,)
    language: str = ""
    n_bytes: int = 0
    power: Sequence[str] = ()
    citation: str = ""
    stored: Mapping[str, str] = field(default_factory=dict)

    def facts(self) -> dict[str, str]:
        """Facts that an import of the data stores: those stored here, and what the card adds."""
        licence = "" if self.licence == "unknown" else self.licence
        known = {"About": self.description, "Licence": licence, "Language": self.language}
        return {**self.stored, **{fact: text for fact, text in known.items() if text}}


def card_text(card: DatasetCard) -> str:
    """Text of the whole card, from the template ``card.md``; the last line has a line end."""
    import huggingface_hub

    spreads = (
        (label, *(card.figures[f"{column}_{kind}"] for kind in ("median", "max")))
        for label, column in _SPREADS
    )
    n_pairs = card.figures["n_pairs"]
    filled = huggingface_hub.DatasetCard.from_template(
        _metadata(card),
        template_str=(resources.files(__package__) / "card.md").read_text(encoding="utf-8"),
        card=card,
        about=about_pairs(card.groups),
        files=f"`{DATA}` holds {n_pairs:,} rows, ordered by `pair_id`.",
        is_gender=list(card.groups) == [GENDERS],
        is_english=card.language in _ENGLISH,
        example=json.dumps(dict(card.example), ensure_ascii=False, indent=2),
        figures=card.figures,
        side=_side,
        # Pairs without pronouns have no first pronoun.
        spreads=[row for row in spreads if row[2] and row[1] is not None],
        limits=LIMITS,
    )
    return f"{filled.content.rstrip()}\n"


def about_pairs(groups: Sequence[str]) -> str:
    """Sentence that explains a row of the data.

    >>> about_pairs(["old/young"])[:68]
    'Each row is two versions of a sentence, one about each of two groups'
    """
    if list(groups) == [GENDERS]:
        return (
            "Each row is a pair of sentences that differ only in their pronouns: a language model "
            "that finds one far more probable than the other prefers a gender."
        )
    return (
        f"Each row is two versions of a sentence, one about each of two groups "
        f"({', '.join(groups)}): a language model that finds one far more probable than the other "
        "prefers a group."
    )


def _metadata(card: DatasetCard) -> DatasetCardData:
    """YAML block that dataset hubs read: licence, language, size, files and features."""
    from huggingface_hub import DatasetCardData

    n_pairs = int(card.figures["n_pairs"])
    return DatasetCardData(
        pretty_name=card.name,
        license=card.licence,
        language=[card.language] if card.language else None,
        task_categories=["text-generation"],
        size_categories=[_size_category(n_pairs)],
        tags=[
            "gender-bias" if list(card.groups) == [GENDERS] else "bias",
            "evaluation",
            "plumbline",
        ],
        configs=[
            {
                "config_name": "default",
                "data_files": [{"split": "test", "path": DATA}],
            }
        ],
        dataset_info={
            "features": [
                {"name": name, "dtype": _HUB_TYPES[kind]} for name, kind, _ in card.columns
            ],
            "splits": [{"name": "test", "num_examples": n_pairs, "num_bytes": card.n_bytes}],
        },
    )


def _size_category(n: int) -> str:
    """Size category of a dataset, as hubs name it; the largest category has no upper limit.

    >>> _size_category(240), _size_category(1_000), _size_category(4_405)
    ('n<1K', '1K<n<10K', '1K<n<10K')
    """
    return _SIZES[max(0, min(len(str(n)) - 3, len(_SIZES) - 1))]


def _side(row: Mapping[str, Any], side: str) -> str:
    """Number of seed words that lean to a side, and their median lean."""
    median = row[f"median_{side}_nats"]
    return f"{row[f'n_{side}']:,} {side}" + (f" (median {median:+.3f})" if median else "")
