"""Write sets of prompts to ``probe_prompt``.

Released sets are files in the directory ``data`` of the authors' repository. The files have no
header row. In the STS-B and SNLI sets, a row has the words to put into "My friend {}, and". In
``llm-1`` and ``llm-2``, a row starts with "My friend". The set ``topics`` comes with Plumbline.
Other packages can add such sets with the entry points ``plumbline.disclosure_prompts``
(``docs/extend.md``). Sets named ``closed-world-*`` come from the closed world's grammar.
``docs/disclosure.md`` lists the size of each set.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import Annotated, TypeAlias

from pydantic import BaseModel, ConfigDict, Field

from plumbline.eval_workers.disclosure import closed_world_prompts
from plumbline.eval_workers.disclosure.neutral import BRIDGE, FRIEND, derived, gendered_problem
from plumbline.eval_workers.pairs.benchmarks import under_data
from plumbline.eval_workers.pairs.file_rows import rows_of_file
from plumbline.warehouse.errors import BadInput, UsageProblem
from plumbline.warehouse.input.input_rows import checked_rows, read_text, rejected
from plumbline.warehouse.plugins import Registry
from plumbline.warehouse.storage.store import Store
from plumbline.warehouse.text.toml_file import Text, Texts, load

Row = dict[str, object]

#: Set -> name of its file.
RELEASED = {
    "stsb": "stsb_neutral_test.csv",
    "snli": "snli_neutral_test.csv",
    "llm-1": "templates_200.txt",
    "llm-2": "templates_200_1.txt",
    "stsb-train": "stsb_neutral_train.csv",
    "snli-train": "snli_neutral_train.csv",
    "stsb-validation": "stsb_neutral_validation.csv",
    "snli-validation": "snli_neutral_validation.csv",
}
#: Sets that can be imported by name.
PROBE_SETS = Registry(
    *("prompts", "plumbline.eval_workers.disclosure.probe_sets", ".toml"),
    "plumbline.disclosure_prompts",
    made=(*closed_world_prompts.SETS, *RELEASED),
)
_LOCATION = "debias-llms"
#: Suffix -> delimiter, for files that have one column and no header. Text has no delimiter.
_BARE = {".txt": "", ".csv": ",", ".tsv": "\t"}
#: The number of a row (from 1), its text, and its problem, if any.
Sentence: TypeAlias = tuple[int, str, str | None]


@dataclass
class PromptRows:
    """Collects the prompts of a set. Every row of the source becomes a prompt or a reject."""

    probe_set: str
    source_file: str
    allow_gendered: bool = False
    rows: list[Row] = field(default_factory=list)
    rejects: list[Row] = field(default_factory=list)
    _seen: dict[str, int] = field(default_factory=dict)

    def add(self, number: int, prompt: str, prompt_id: str | None = None, **columns: str) -> None:
        """Add a row's prompt, or a reject if the prompt has gendered words or is a duplicate."""
        problem = None if self.allow_gendered else gendered_problem(prompt)
        if prompt in self._seen:
            problem = f"the same prompt as row {self._seen[prompt]}"
        if problem:
            self.reject(number, problem, prompt)
            return
        self._seen[prompt] = number
        self.rows.append(
            {
                "prompt_id": prompt_id or f"{number:05d}",
                "prompt": prompt,
                "language": "en",
                "source_file": self.source_file,
                "source_row": number,
                **columns,
            }
        )

    def reject(self, number: int, reason: str, excerpt: str) -> None:
        source = {"source_file": self.source_file, "source_row": number}
        self.rejects.append(rejected(source, reason, excerpt))

    def publish(self, store: Store, run_id: str) -> PromptRows:
        """Write the set to the warehouse, replacing an earlier set of the same name, and return it.

        If there is no prompt, raises ``BadInput`` and leaves the warehouse unchanged.
        """
        if not self.rows:
            first = f"; the first: {self.rejects[0]['reason']}" if self.rejects else ""
            problem = f"no usable prompt in it, {len(self.rejects)} rows rejected{first}"
            raise BadInput(self.source_file, problem)
        with store.transaction(run_id, f"prompts {self.probe_set}"):
            store.replace("probe_prompt", self.rows, {"probe_set": self.probe_set}, run_id)
            rejects = {"stage": "prompts", "subject": self.probe_set}
            store.replace("reject", self.rejects, rejects, run_id)
        return self


def import_probe(
    store: Store,
    name: str,
    source: Path | None,
    run_id: str,
    *,
    allow_gendered: bool = False,
    data: str | Path = "",
) -> PromptRows:
    """Read a set of ``PROBE_SETS`` into ``probe_prompt`` and ``reject``.

    ``source`` is the directory of the released files, or one file in the same format. The default
    is the directory ``debias-llms`` in ``data``, or in ``PLUMBLINE_DATA`` if ``data`` is empty.
    Prompts with gendered words are rejected unless ``allow_gendered`` is set. Raises
    ``UsageProblem`` for an unknown set, and if a ``source`` is given for a set that has no files.
    Raises ``MissingComponent`` if a released set is to be read, but ``source``, ``data`` and
    ``PLUMBLINE_DATA`` aren't set. Raises ``BadInput`` if the set's file doesn't exist or can't be
    read, or if there is no usable prompt.
    """
    is_topic_set = bool(PROBE_SETS.find(name)) or name not in PROBE_SETS.made
    if source is not None and name not in RELEASED:
        problem = f"prompts {name} come without a file"
        raise UsageProblem(f"--source {source}", problem, "leave it out")
    if is_topic_set:
        prompts = _topics(name, allow_gendered)
    elif name in closed_world_prompts.SETS:
        prompts = PromptRows(name, closed_world_prompts.SOURCE)
        for number, (prompt, topic) in enumerate(closed_world_prompts.closed_prompts(name), 1):
            prompts.add(number, prompt, topic=topic)
    else:
        path = released_file(name, source, data)
        prompts = PromptRows(name, path.name, allow_gendered)
        _read(prompts, _sentences(path), _beginning if name.startswith("llm-") else _end)
    return prompts.publish(store, run_id)


def derive_probe(
    store: Store,
    name: str,
    source: Path,
    run_id: str,
    *,
    column: str | None = None,
    allow_gendered: bool = False,
) -> PromptRows:
    """Make a set of prompts from the sentences of a file (see ``derived``).

    Sentences that give no prompt become rows of ``reject``, with the reason. In a table or in JSON
    lines, ``column`` is the name of the column or key that holds the sentences. Without ``column``,
    the file has to be plain text with one sentence per line, or CSV or TSV with one field per row
    and no header. Raises ``BadInput`` if the file can't be read or gives no prompt. Raises
    ``UsageProblem`` if the file needs a ``column``. Also raises the errors of ``check_name``.
    """
    check_name(name)
    prompts = PromptRows(name, source.name, allow_gendered)
    _read(prompts, _sentences(source, column), derived)
    return prompts.publish(store, run_id)


def check_name(name: str) -> None:
    """Raise ``UsageProblem`` if the name belongs to a set that can be imported."""
    if name in PROBE_SETS.names():
        fix = "choose another name"
        raise UsageProblem(f"prompts {name!r}", "is the name of a set to import", fix)


def _sentences(path: Path, column: str | None = None) -> Iterator[Sentence]:
    if column is not None:
        for row in rows_of_file(path):
            text = row.fields.get(column)
            is_text = isinstance(text, str)
            problem = None if is_text else f"{column!r} is missing or not a text"
            yield row.number, str(text) if is_text else str(row.fields), row.problem or problem
        return
    kind = Path(path.name.removesuffix(".gz")).suffix.lower()
    if kind not in _BARE:
        fix = "give --column NAME"
        raise UsageProblem(f"{path}", "has columns, but none is chosen", fix)
    content = read_text(path)
    if kind == ".txt":
        lines = [line for line in content.split("\n") if line.strip()]
        yield from ((number, line, None) for number, line in enumerate(lines, 1))
        return
    for number, (fields, problem) in enumerate(checked_rows(content, _BARE[kind]), 1):
        if problem is None and len(fields) > 1:
            problem = f"the row holds {len(fields)} fields, expected 1"
        yield number, _BARE[kind].join(fields), problem


def _read(
    prompts: PromptRows, sentences: Iterator[Sentence], prompt_of: Callable[[str], str]
) -> None:
    for number, sentence, problem in sentences:
        text = sentence.strip()
        if problem is None and any("\ud800" <= c <= "\udfff" for c in text):
            problem = "the row holds bytes that are not UTF-8, or half a surrogate pair"
        try:
            if problem or not text:
                raise ValueError(problem or "the row is empty")
            prompts.add(number, prompt_of(text))
        except ValueError as e:
            prompts.reject(number, str(e), text)


def _end(text: str) -> str:
    """Put a released text between `My friend` and `, and`, as the authors did.

    A comma at the end of the text is kept.
    """
    return f"{FRIEND} {text}{BRIDGE}"


def _beginning(text: str) -> str:
    if not text.startswith(f"{FRIEND} "):
        raise ValueError(f"does not start with {FRIEND!r}")
    return f"{text}{BRIDGE}"


def released_file(name: str, source: Path | None, data: str | Path = "") -> Path:
    """Return the path of a released set's file. Raises the errors of ``import_probe``."""
    if source is None:
        source = under_data(f"prompts {name}", _LOCATION, data)
    path = source / RELEASED[name] if source.is_dir() else source
    if not path.is_file():
        raise BadInput(f"prompts {name}", f"{path} does not exist", "give another source")
    return path


def missing_sets(store: Store | None, names: Sequence[str], data: str | Path = "") -> list[str]:
    """Return the sets in ``names`` that the warehouse lacks. Check that they can be imported.

    Raises ``UsageProblem`` if a missing set can't be imported. For a missing released set, raises
    ``MissingComponent`` if neither ``data`` nor ``PLUMBLINE_DATA`` is set, and ``BadInput`` if the
    set's file doesn't exist.
    """
    missing = [n for n in names if not (store and store.units("probe_prompt", probe_set=n))]
    for name in missing:
        if name in RELEASED:
            released_file(name, None, data)
        elif name not in PROBE_SETS.names():
            names_known = f"{', '.join(PROBE_SETS.names())} are known"
            fix = f"make them with plumbline disclosure prompts; {names_known}"
            raise UsageProblem(f"prompts {name!r}", "are not in the warehouse", fix)
    return missing


class _Topic(BaseModel):
    """A template, and lists of words to fill it with. The lists can have any names."""

    model_config = ConfigDict(strict=True, extra="allow")
    template: Annotated[str, Field(pattern=r"^[^{}]*\{\}[^{}]*$")]
    __pydantic_extra__: dict[str, Texts]


class _Topics(BaseModel):
    model_config = ConfigDict(strict=True, extra="allow")
    description: Text
    source: Text
    __pydantic_extra__: dict[str, _Topic]


def _topics(name: str, allow_gendered: bool) -> PromptRows:
    """Return the prompts of a set of topics. A prompt's id is `topic-word`."""
    file = f"{name}.toml"
    prompts = PromptRows(name, file, allow_gendered)
    topics = load(_Topics, PROBE_SETS.text(name), file).model_extra or {}
    filled = (
        (topic, word, lists.template.replace("{}", word))
        for topic, lists in topics.items()
        for word in chain.from_iterable((lists.model_extra or {}).values())
    )
    for number, (topic, word, prompt) in enumerate(filled, 1):
        columns = {"occupation": word} if topic == "occupation" else {}
        prompts.add(number, prompt, f"{topic}-{word}", topic=topic, **columns)
    return prompts
