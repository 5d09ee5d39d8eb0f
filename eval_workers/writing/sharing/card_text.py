"""Text of a dataset card, Markdown with YAML front matter, from figures and facts."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

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
        address: of the directory of its files, ending in `/`; empty for the card's own directory.
        files: names of the files that hold its rows.
        n_bytes: bytes of these rows in memory.
        power: sentences on the smallest effect that the benchmark can find.
        citation: BibTeX entry of its paper; empty if unknown.
        left_out: file of the pairs that metrics leave out, their number, and bytes in memory.
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
    address: str = ""
    files: Sequence[str] = ("data.parquet", "data.jsonl")
    n_bytes: int = 0
    power: Sequence[str] = ()
    citation: str = ""
    left_out: tuple[str, int, int] | None = None


def card_text(card: DatasetCard) -> str:
    """Text of the whole card; the last line has a line end."""
    example = json.dumps(dict(card.example), ensure_ascii=False, indent=2)
    made = [f"- {fact}: {value}" for fact, value in card.made.items() if value is not None]
    licence = f"`{card.licence}`"
    if card.licence == "unknown":
        licence = "Not known. Fill in `license` above before you share this."
    parts = [
        _front_matter(card),
        f"# {card.name}",
        f"{card.description} {about_pairs(card.groups)}",
        _data(card),
        f"```json\n{example}\n```",
        f"## Statistics\n\n{_statistics(card)}",
        "\n".join(["## How it was made\n", *made]),
        _use(card),
        "\n".join(["## Limits\n", *(f"- {limit}" for limit in LIMITS)]),
        *([f"## Citation\n\n```bibtex\n{card.citation}\n```"] if card.citation else []),
        f"## Licence\n\n{licence}",
    ]
    return "\n\n".join(parts) + "\n"


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


def _front_matter(card: DatasetCard) -> str:
    """YAML block that dataset hubs read: licence, language, size, files and features."""
    n = int(card.figures["n_pairs"])
    tag = "gender-bias" if list(card.groups) == [GENDERS] else "bias"
    lines = ["---", f"pretty_name: {json.dumps(card.name, ensure_ascii=False)}"]
    lines += [f"license: {json.dumps(card.licence)}"]
    lines += ["language:", f"- {json.dumps(card.language)}"] if card.language else []
    lines += ["task_categories:", "- text-generation"]
    lines += ["tags:", f"- {tag}", "- evaluation", "- plumbline"]
    lines += ["size_categories:", f"- {_size_category(n)}"]
    splits = [("test", card.files[0], n, card.n_bytes)]
    splits += [("left_out", *card.left_out)] if card.left_out else []
    lines += ["configs:", "- config_name: default", "  data_files:"]
    for split, file, *_ in splits:
        lines += [f"  - split: {split}", f"    path: {file}"]
    lines += ["dataset_info:", "  features:"]
    for name, kind, _ in card.columns:
        lines += [f"  - name: {name}", f"    dtype: {_HUB_TYPES[kind]}"]
    lines += ["  splits:"]
    for split, _, n_rows, n_bytes in splits:
        lines += [f"  - name: {split}", f"    num_examples: {n_rows}", f"    num_bytes: {n_bytes}"]
    return "\n".join([*lines, "---"])


def _size_category(n: int) -> str:
    """Size category of a dataset, as hubs name it; the largest category has no upper limit.

    >>> _size_category(240), _size_category(1_000), _size_category(4_405)
    ('n<1K', '1K<n<10K', '1K<n<10K')
    """
    return _SIZES[max(0, min(len(str(n)) - 3, len(_SIZES) - 1))]


def _data(card: DatasetCard) -> str:
    table = ["| column | type | meaning |", "|---|---|---|"]
    for name, kind, meaning in card.columns:
        escaped = meaning.replace("|", "\\|")  # a bar would end the cell
        table.append(f"| `{name}` | {kind} | {escaped} |")
    n = f"{card.figures['n_pairs']:,}"
    names = " and ".join(f"`{file}`" for file in card.files)
    hold = "hold the same" if len(card.files) > 1 else "holds"
    files = f"{names} {hold} {n} rows, ordered by `pair_id`."
    if card.left_out:
        file, n_left_out, _ = card.left_out
        files += (
            f" `{file}` (split `left_out`) holds {n_left_out:,} further pairs of the benchmark "
            "that metrics don't use."
        )
    parts = ["## Data", files, "\n".join(table)]
    if list(card.groups) == [GENDERS] and card.language in _ENGLISH:
        parts.append(
            "In a template `{pronoun}` stands for he or she, `{pronoun1}` for his or her, "
            "`{pronoun2}` for him or her, `{pronoun2}self` for himself or herself."
        )
    return "\n\n".join(parts)


def _statistics(card: DatasetCard) -> str:
    figures = card.figures
    lines = ["| | median | largest |", "|---|---:|---:|"]
    for label, column in _SPREADS:
        median, largest = (figures[f"{column}_{kind}"] for kind in ("median", "max"))
        if largest and median is not None:  # pairs without pronouns have no first pronoun
            lines.append(f"| {label} | {median:g} | {largest:,} |")
    counts = [
        f"- Sentence pairs: {figures['n_pairs']:,}",
        f"- Words that pairs were made for: {figures['n_seed_words']:,}",
    ]
    if card.language in _ENGLISH:
        counts.append(
            f"- Gendered words written out: {figures['n_female']:,} female in "
            f"{figures['n_pairs_female']:,} pairs, {figures['n_male']:,} male in "
            f"{figures['n_pairs_male']:,} pairs, any in {figures['n_pairs_gendered']:,}"
        )
    counts += [f"- {sentence[0].upper()}{sentence[1:]}" for sentence in card.power]
    for row in figures["seed_delta"]:
        counts.append(
            f"- Lean of {row['n_defined']:,} of these words in {row['corpus']} ({row['contrast']}, "
            f"nats): median {row['median_nats']:+.3f}, largest size {row['largest_nats']:.3f}; "
            f"{_side(row, 'female')}, {_side(row, 'male')}"
        )
    return "\n".join([*counts, "", *lines])


def _side(row: Mapping[str, Any], side: str) -> str:
    """Number of seed words that lean to a side, and their median lean."""
    median = row[f"median_{side}_nats"]
    return f"{row[f'n_{side}']:,} {side}" + (f" (median {median:+.3f})" if median else "")


def _use(card: DatasetCard) -> str:
    code = f"import duckdb\n\npairs = duckdb.sql(\"FROM '{card.address}{card.files[0]}'\")"
    load = f"\n\n```\nplumbline benchmark import {card.address[:-1]}\n```" if card.address else ""
    return (
        "## Use\n\nCompare log p(`sentence_a`) with log p(`sentence_b`) under a model. The share "
        "of pairs whose difference is at most ln 1.65 either way is the unstereotypical share.\n\n"
        f"```python\n{code}\n```{load}"
    )
