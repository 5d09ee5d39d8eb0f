"""How a corpus is counted: the options of every command that counts."""

from __future__ import annotations

from typing import Annotated, Literal, TypeAlias

from pydantic import Field
from pydantic.dataclasses import dataclass

from plumbline.warehouse.errors import UsageProblem
from plumbline.warehouse.options import STRICT

Rule: TypeAlias = Literal["pairs", "windows"]
#: Bytes of the smallest memory limit of a task that can be kept.
LEAST_MEMORY = 512 << 20
#: Co-occurrences on either side from which the delta of a word counts in MaxPMI. The smallest of 1,
#: 3, 5, 10, 20 and 30 that keeps the errors of ``tools/simulations/least_count.py`` at its levels.
LEAST_COUNT = 10


@dataclass(frozen=True, kw_only=True, config=STRICT)
class RecordOptions:
    """How the records of shards become texts."""

    text_field: Annotated[
        str,
        Field(
            min_length=1,
            description="Field of a JSON record or Parquet row with the text; a.b is b in a.",
        ),
    ] = "text"
    tokenizer: Annotated[
        str,
        Field(description="Model whose tokens .bin and .npy shards hold: a directory or hub id."),
    ] = ""


@dataclass(frozen=True, kw_only=True, config=STRICT)
class CorpusOptions(RecordOptions):
    """How a corpus is counted.

    ``targets``: name of a word list, or the path of one's TOML file, or ``all``: every kept word is
    a target (stop words that count are those of the list ``gendered``). ``rule`` and ``window``:
    see ``jobs.kernel.CountOptions``. ``language``: see ``warehouse.languages``; its word lists are
    found before those of English. Counts don't depend on ``memory``. Changing ``min_count``
    needs no ``replace``, since nothing is counted again; words of the word list are kept.

    Raises ``UsageProblem`` for a size of memory that is not valid, or too small.

    >>> CorpusOptions(memory="12")
    Traceback (most recent call last):
    ...
    plumbline.warehouse.errors.UsageProblem: memory '12': is not a valid size \
(give one such as 512m or 4g)
    """

    language: Annotated[
        str,
        Field(
            description="Language of the text: en, another code such as fr, or a TOML file's path."
        ),
    ] = "en"
    targets: Annotated[
        str,
        Field(description="Whose pairs are kept: a word list, a TOML file's path, or all words."),
    ] = "gendered"
    rule: Annotated[Rule, Field(description="Counting rule.")] = "pairs"
    window: Annotated[
        int, Field(ge=2, le=1000, description="Width of the window in kept tokens.")
    ] = 10
    min_count: Annotated[
        int,
        Field(
            ge=1,
            le=(1 << 63) - 1,
            description="Leave out words counted fewer times in the whole corpus, but for listed "
            "ones. Another one is merged from what was counted, without --replace.",
        ),
    ] = 1
    evidence: Annotated[
        bool,
        Field(
            description="Keep the documents as numbers of their kept words, 2 bytes each: what "
            "`plumbline why` and word lists that are asked for later need."
        ),
    ] = True
    source_field: Annotated[
        str,
        Field(description="Field that names the source of a document; a.b is b in a."),
    ] = "meta.pile_set_name"
    step_sequences: Annotated[
        int,
        Field(
            ge=0,
            description="Sequences that a step of a training reads of .bin and .npy shards, to "
            "count them by block of steps; 0 for text in no such order.",
        ),
    ] = 0
    block_steps: Annotated[
        int, Field(ge=1, description="Steps of a block, with --step-sequences.")
    ] = 1000
    sequence_tokens: Annotated[
        int, Field(ge=0, description="Tokens of a training's sequence in .npy shards.")
    ] = 0
    order: Annotated[
        str,
        Field(
            description="File with the order in which a training reads the sequences of .npy "
            "shards, such as OLMo's global_indices.npy; empty: as they lie."
        ),
    ] = ""
    memory: Annotated[
        str, Field(description="Most memory of each counting process, such as 512m or 4g.")
    ] = "2g"
    replace: Annotated[
        bool, Field(description="Count a corpus anew that exists with other options.")
    ] = False

    def __post_init__(self) -> None:
        if self.memory_bytes < LEAST_MEMORY:
            least = f"a task needs at least {LEAST_MEMORY >> 20}m"
            raise UsageProblem(f"memory {self.memory!r}", least)

    @property
    def memory_bytes(self) -> int:
        """``memory`` in bytes (m and g are powers of 1,024).

        >>> CorpusOptions(memory="512m").memory_bytes, CorpusOptions(memory="4G").memory_bytes
        (536870912, 4294967296)
        """
        units = {"m": 20, "g": 30}
        number, unit = self.memory[:-1], self.memory[-1:].lower()
        if unit not in units or not number.isdecimal():
            fix = "give one such as 512m or 4g"
            raise UsageProblem(f"memory {self.memory!r}", "is not a valid size", fix)
        return int(number) << units[unit]
