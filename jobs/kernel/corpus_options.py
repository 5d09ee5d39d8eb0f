"""Options of the commands that count a corpus or choose its candidate seed words."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from functools import cached_property
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeAlias

from pydantic import Field
from pydantic.dataclasses import dataclass

from plumbline.warehouse import languages, wordlists
from plumbline.warehouse.options import STRICT

if TYPE_CHECKING:
    from plumbline.jobs.kernel.tokens.tokenizer import Targets

Rule: TypeAlias = Literal["pairs", "windows"]
#: If ``targets`` has this value instead of a word list's name, every kept word is a target.
ALL = "all"
#: Options that don't change the counts of a shard. Targets and language are only names. The counts
#: depend on the words and rules that they stand for.
_NOT_COUNTED = ("targets", "language", "min_count", "memory_gb", "replace")
#: MaxPMI uses a word's delta only if the word co-occurs this often with each side. With fewer
#: co-occurrences, simulated errors exceed the limits in ``docs/methods.md``.
LEAST_COUNT = 10


@dataclass(frozen=True, kw_only=True, config=STRICT)
class RecordOptions:
    """Options for reading texts from the records of shards."""

    text_field: Annotated[
        str, Field(min_length=1, description="Record field with the text; a.b means b inside a.")
    ] = "text"


@dataclass(frozen=True, kw_only=True, config=STRICT)
class CorpusOptions(RecordOptions):
    """Options for counting a corpus.

    If ``targets`` is ``all``, every kept word is a target. Stop words are then dropped, except
    those in the list ``gendered``. The rule ``pairs`` counts two tokens as a pair if they are less
    than ``window`` tokens apart. The rule ``windows`` counts a pair once in each window with both
    words. The word lists of ``language`` replace English lists of the same name.
    """

    language: Annotated[
        str, Field(description="Language: en, another code such as fr, or a TOML file's path.")
    ] = "en"
    targets: Annotated[
        str, Field(description="Target words: a word list's name, a TOML file's path, or all.")
    ] = "gendered"
    rule: Annotated[
        Rule,
        Field(description="pairs counts nearby pairs; windows counts windows with both words."),
    ] = "pairs"
    window: Annotated[
        int, Field(ge=2, le=1000, description="Window width in words, not counting stop words.")
    ] = 10
    min_count: Annotated[
        int,
        Field(
            ge=1,
            le=(1 << 63) - 1,
            description="Leave out words that occur fewer times than this in the whole corpus, "
            "except listed words. You can change this without --replace; no text is counted again.",
        ),
    ] = 1
    evidence: Annotated[
        bool,
        Field(
            description="Keep the words of each document, which `plumbline why` needs (about 2 "
            "bytes per word)."
        ),
    ] = True
    source_field: Annotated[
        str,
        Field(description="Record field with the document's source; a.b means b inside a."),
    ] = "meta.pile_set_name"
    memory_gb: Annotated[
        float,
        Field(ge=0.5, le=1 << 20, description="Memory limit of each counting process, in GB."),
    ] = 2.0
    replace: Annotated[
        bool, Field(description="Replace a corpus that was counted with other options.")
    ] = False

    @property
    def memory_bytes(self) -> int:
        return int(self.memory_gb * (1 << 30))

    @property
    def all_pairs(self) -> bool:
        return self.targets == ALL

    @property
    def kept_source_field(self) -> str | None:
        """The field with the source, or None if the words of documents aren't kept."""
        return self.source_field if self.evidence else None

    @cached_property
    def rules(self) -> languages.Language:
        """The language's rules. Raises ``UsageProblem`` or ``BadInput`` if they can't be read."""
        return languages.load(self.language)

    @property
    def word_list(self) -> wordlists.WordList:
        """The word list of the targets. For ``all``, this is the list `gendered`.

        Raises ``UsageProblem`` if there is no such list.
        """
        return self.rules.word_list("gendered" if self.all_pairs else self.targets)

    @property
    def listed(self) -> Targets:
        """The words of the word list, as targets.

        Raises ``UsageProblem`` if the list or language is unknown, and ``BadInput`` if a file is
        invalid. Raises ``MissingComponent`` if the language needs spaCy and that isn't installed.
        """
        from plumbline.jobs.kernel.tokens.tokenizer import Targets

        return Targets(self.word_list.targets, self.rules.token_rules).checked()

    def of_partials(self) -> dict[str, Any]:
        """Return all options that change a shard's counts, except targets and language."""
        counted = {k: v for k, v in asdict(self).items() if k not in _NOT_COUNTED}
        source_field = self.kept_source_field or ""
        return counted | {"all_pairs": self.all_pairs, "source_field": source_field}

    def columns(self) -> dict[str, Any]:
        """Return these options as columns of the table ``corpus``. ``options_of`` reads them."""
        from plumbline.jobs.kernel.tokens.language_tables import tokenizer_version

        return {
            "rule": self.rule,
            "window_tokens": self.window,
            "targets": ALL if self.all_pairs else self.word_list.name,
            "targets_hash": self.word_list.hash,
            "language": self.rules.name if self.rules.rules else None,
            "tokenizer": tokenizer_version(self.rules.token_rules),
            "text_field": None if self.text_field == RecordOptions.text_field else self.text_field,
            "source_field": self.kept_source_field,
            "language_file": self.rules.text or None,
            "min_count": self.min_count,
        }


def options_of(row: Mapping[str, Any]) -> CorpusOptions:
    """Return the options with which a corpus was counted, given its row of the table ``corpus``.

    If a word list or language was read from a file, the option is its name, not the file's path.
    """
    names = ("rule", "targets", "language", "text_field", "source_field", "min_count")
    values = {name: row[name] for name in names} | {"window": row["window_tokens"]}
    values["evidence"] = row["source_field"] is not None
    return CorpusOptions(**{k: v for k, v in values.items() if v is not None})


@dataclass(frozen=True, kw_only=True, config=STRICT)
class VocabularyOptions:
    """Options for choosing a corpus's candidate seed words."""

    quantile: Annotated[
        float, Field(ge=0, lt=1, description="Share of words to leave out, the rarest first.")
    ] = 0.2
    any_language: Annotated[bool, Field(description="Also keep non-English words.")] = False
