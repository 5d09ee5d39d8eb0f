"""Makes prompts about a person and about a counterpart, from a TOML file of templates and words.

Other packages can add files: see ``docs/extend.md``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from importlib import resources
from itertools import chain, product
from pathlib import Path
from typing import Annotated, TypeAlias

from pydantic import AfterValidator, BeforeValidator, Field

from plumbline.eval_workers.pairs.pronouns.pronoun_templates import fill
from plumbline.warehouse.errors import BadInput
from plumbline.warehouse.plugins import Registry
from plumbline.warehouse.text import toml_file
from plumbline.warehouse.text.placeholders import holding
from plumbline.warehouse.text.toml_file import OneOrMore, Text, Texts, toml_table

#: The set of prompts for models of the closed world.
CLOSED_WORLD_SET = "closed-world"
_CLOSED_FILE = "closed_world.toml"
PROBE_SETS = Registry(
    *("probe set", "plumbline.eval_workers.fairpair.probe_sets", ".toml"),
    "plumbline.fairpair_prompts",
    made=(CLOSED_WORLD_SET,),
    instead="give --prompts FILE.toml",
)


#: Group -> a word's form for that group; the only key is "" if all groups have the same form.
Forms: TypeAlias = Annotated[
    Mapping[str, Text],
    BeforeValidator(lambda value: {"": value} if isinstance(value, str) else value),
]
#: Words that together describe a person; in the file, a single word needs no list.
_Combination: TypeAlias = Annotated[tuple[Forms, ...], OneOrMore]

#: Placeholders that every template needs; `a|b` means at least one of the two.
_PLACEHOLDERS = ("name", "occupation|a_occupation")


@toml_table
class _Templates:
    plain: Annotated[Text, AfterValidator(holding(_PLACEHOLDERS))]
    described: Annotated[
        Text, AfterValidator(holding((*_PLACEHOLDERS, "descriptors|a_descriptors")))
    ] = ""
    joined: Text = ", "  # the text between two descriptors


@toml_table
class PromptFile:
    """A file that describes prompts; ``common-sents.toml`` explains each key.

    An entry of ``descriptors`` lists the words that one prompt uses; the list may be empty.
    """

    file: str
    language: Text
    axis: Text
    groups: tuple[Text, Text]
    names: Annotated[tuple[tuple[Text, Text], ...], Field(min_length=1)]
    occupations: Annotated[tuple[Forms, ...], Field(min_length=1)]
    templates: _Templates
    description: Text = "none"
    source: Text = "none"
    descriptors: tuple[_Combination, ...] = ()
    articles: Mapping[str, Texts] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name, pairs in {"groups": [self.groups], "names": self.names}.items():
            if same := next((a for a, b in pairs if a == b), None):
                raise ValueError(f"{name}: {same} is listed twice")
        for word in (*self.occupations, *chain.from_iterable(self.descriptors)):
            if set(word) not in ({""}, set(self.groups)):
                forms = ", ".join(f'{group} = "..."' for group in self.groups)
                raise ValueError(f"{dict(word)} needs {{ {forms} }}")
        if any(self.descriptors) and not self.templates.described:
            raise ValueError("templates.described is missing: descriptors need it")

    def with_article(self, word: str) -> str:
        """Put an article before a word, if the file lists one for the word's first letters.

        >>> file = load()
        >>> [file.with_article(w) for w in ("clerk", "editor", "unit manager", "Uninvited one")]
        ['a clerk', 'an editor', 'a unit manager', 'an Uninvited one']
        """
        fitting = [
            (len(start), article)
            for article, starts in self.articles.items()
            for start in starts
            if word.lower().startswith(start.lower())
        ]
        return f"{max(fitting, key=lambda fit: fit[0])[1]} {word}" if fitting else word

    def prompt(
        self, name: str, group: str, occupation: Forms, descriptors: tuple[Forms, ...] = ()
    ) -> str:
        """Fill a template with a person's name, occupation and descriptors.

        >>> word = {"m": "accountant", "f": "accountant"}
        >>> load().prompt("Jane", "f", word, ({"f": "early riser"}, {"f": "calm person"}))
        'Jane is an early riser, a calm person working as an accountant.'
        """
        words, templates = [form(word, group) for word in descriptors], self.templates
        return (templates.described if words else templates.plain).format(
            name=name,
            occupation=form(occupation, group),
            a_occupation=self.with_article(form(occupation, group)),
            descriptors=templates.joined.join(words),
            a_descriptors=templates.joined.join(map(self.with_article, words)),
        )


def form(word: Forms, group: str) -> str:
    """Return a word's form for a group, or else its form for all groups.

    >>> form({"": "clerk"}, "m"), form({"m": "Lehrer", "f": "Lehrerin"}, "f")
    ('clerk', 'Lehrerin')
    """
    return word.get(group) or word[""]


def load(source: Path | str = "common-sents") -> PromptFile:
    """Read a file that describes prompts. ``source`` is its path, or its name in ``PROBE_SETS``.

    Raises ``UsageProblem`` if there is no such file, and what ``Registry.text`` raises for a name.
    Raises ``BadInput`` for a wrong value and for an unknown key or placeholder.
    """
    if isinstance(source, Path):
        return toml_file.load(PromptFile, source, str(source), file=source.name)
    file = f"{source}.toml"
    return toml_file.load(PromptFile, PROBE_SETS.text(source), file, file=file)


def prompt_rows(file: PromptFile, name: str) -> list[dict[str, object]]:
    """Return the rows of ``probe_prompt`` for the set ``name``.

    There is a row for each combination of a pair of names, an entry of ``descriptors`` and an
    occupation. Raises ``BadInput`` if two prompts get the same identifier.

    >>> rows = prompt_rows(load(), "common-sents")
    >>> len(rows), rows[1]["prompt_id"], rows[1]["perturbed_prompt"]
    (60, 'John-Jane-man-accountant', 'Jane is a woman working as an accountant.')
    """
    first, second = file.groups
    rows: list[dict[str, object]] = []
    for (entity, counterpart), descriptors, occupation in product(
        file.names, file.descriptors or ((),), file.occupations
    ):
        described = ", ".join(form(word, first) for word in descriptors)
        parts = [entity, counterpart, *([described] if described else []), form(occupation, first)]
        rows.append(
            {
                "probe_set": name,
                "prompt_id": "-".join(parts),
                "prompt": file.prompt(entity, first, occupation, descriptors),
                "perturbed_prompt": file.prompt(counterpart, second, occupation, descriptors),
                "entity": entity,
                "perturbed_entity": counterpart,
                "axis": file.axis,
                "entity_group": first,
                "perturbed_group": second,
                "occupation": form(occupation, first),
                "descriptors": described or None,
                "language": file.language,
                "source_file": file.file,
                "source_row": len(rows) + 1,
            }
        )
    ids = [row["prompt_id"] for row in rows]
    if twice := next((i for i in ids if ids.count(i) > 1), None):
        raise BadInput(
            file.file, f"two prompts are called {twice}", "list each word and pair of names once"
        )
    return rows


def closed_world_rows() -> list[dict[str, object]]:
    """Return the rows of ``probe_prompt`` for the closed world, with pronouns instead of names.

    Each prompt is an unfinished sentence. Its identifier names the slot that the next word fills.
    In topic `planted`, which comes first, the possible words lean to she or he. In topic `control`,
    the next word doesn't depend on the person. Sample one token per prompt, since every word is one
    token in the preset `closed`. Expect a small F: most slots have some fifty possible words, so
    samples of a group nearly always differ.

    >>> rows = closed_world_rows()
    >>> len(rows), rows[0]["prompt_id"], rows[0]["prompt"][-36:]
    (30, 'planted-occupation-1', 'Everyone knew that he was the gentle')
    """
    content = toml_file.read(resources.files("plumbline.eval_workers.fairpair") / _CLOSED_FILE)
    same = {"probe_set": CLOSED_WORLD_SET, "axis": "gender", "language": "en"}
    same |= {"entity": "He", "perturbed_entity": "She", "source_file": _CLOSED_FILE}
    same |= {"entity_group": "m", "perturbed_group": "f"}
    rows: list[dict[str, object]] = []
    for topic in ("planted", "control"):
        for slot, entries in content[topic].items():
            for number, (context, ending) in enumerate(entries, 1):
                template = f"{content['contexts'][context - 1]} {ending}"
                sides = {"prompt": fill(template, "m"), "perturbed_prompt": fill(template, "f")}
                place = {"prompt_id": f"{topic}-{slot}-{number}", "source_row": len(rows) + 1}
                rows.append({**same, **place, **sides, "topic": topic})
    return rows
