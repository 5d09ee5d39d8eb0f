"""The wordings that are put to the model: read from TOML or a release, checked, filled.

A folder of UnStereoEval's release, such as ``benchmark-creation-configs/use-5``, has the request
for sentences, one file per pronoun; beside the folder lie those to revise, convert and judge. They
are read as they are, and their placeholders become ours. Nothing of the files is kept here.
"""

from __future__ import annotations

import hashlib
import json
import re
import stat
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib import resources
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

from pydantic import AfterValidator, ConfigDict, Field
from pydantic.dataclasses import dataclass as checked_class

from plumbline.warehouse.errors import BadInput
from plumbline.warehouse.files import kind_of
from plumbline.warehouse.text import toml_file
from plumbline.warehouse.text.placeholders import holding
from plumbline.warehouse.text.toml_file import (
    Amount,
    OneOrMore,
    Stripped,
    Text,
    read_text,
    toml_table,
)

#: What ``{forms}`` stands for, and ``{from}`` for the other pronoun: subject, possessive, object
#: and reflexive, as UnStereoEval's wordings name a pronoun (its App. C has the same words).
_FORMS = {"she": "she/her/her/herself", "he": "he/his/him/himself"}
_GENERATE = AfterValidator(holding(["word", "pronoun|forms", "n", "max_words"]))
_REVISE = AfterValidator(holding(["word", "pronoun|forms", "sentence"], ["max_words"]))
_CONVERT = AfterValidator(holding(["sentence", "pronoun|forms"], ["from"]))
_JUDGE = AfterValidator(holding(["sentence"]))


@toml_table
class _File:
    generate: Annotated[Stripped, _GENERATE]
    revise: Annotated[tuple[Annotated[Stripped, _REVISE], ...], OneOrMore, Field(min_length=1)]
    convert: Annotated[Stripped, _CONVERT]
    judge: Annotated[tuple[Annotated[Stripped, _JUDGE], ...], OneOrMore, Field(min_length=1)]


@dataclass(frozen=True)
class Prompts:
    """Wordings by role; of ``revise`` and ``judge`` any number, used in turn.

    ``generate_he`` is asked for sentences with *he* where it isn't ``None``. ``sources`` say for
    each role where its wordings come from.
    """

    generate: str
    revise: tuple[str, ...]
    convert: str
    judge: tuple[str, ...]
    generate_he: str | None = None
    sources: tuple[tuple[str, str], ...] = field(default=(), compare=False)

    def generating(self, pronoun: str) -> str:
        """The wording that asks for sentences with a pronoun."""
        return self.generate_he or self.generate if pronoun == "he" else self.generate

    @property
    def hash(self) -> str:
        """Hash of all wordings (16 hex digits), to be recorded with a build."""
        roles: list[object] = [self.generate, self.revise, self.convert, self.judge]
        roles += [self.generate_he] if self.generate_he else []
        return hashlib.sha256(json.dumps(roles).encode()).hexdigest()[:16]


def load(path: Path | None = None) -> Prompts:
    """Read the wordings of a file, of a folder of a release, or those that come with Plumbline.

    Raises ``UsageProblem`` when there is no such file, ``BadInput`` naming the role (and which of
    its wordings, from 1) for a placeholder that is unknown there or missing.

    >>> len(load().revise), len(load().judge)
    (4, 2)
    """
    if path and path.is_dir():
        return load_released(path)
    what = f"prompts {path}" if path else "prompts of Plumbline"
    file = path or resources.files("plumbline.eval_workers.writing") / "prompts.toml"
    return parse(what, read_text(file, what))


def parse(what: str, text: str) -> Prompts:
    """The wordings of a TOML text; ``what`` names it in errors, which are as in ``load``."""
    file = toml_file.load(_File, text, what)
    numbers = {"generate": 1, "revise": len(file.revise), "convert": 1, "judge": len(file.judge)}
    sources = tuple((role, f"{n} of {what}") for role, n in numbers.items())
    return Prompts(file.generate, file.revise, file.convert, file.judge, sources=sources)


def fill_prompt(wording: str, **values: object) -> str:
    """A wording with its placeholders filled; values are put in as they are.

    >>> fill_prompt("Is '{sentence}' {{fine}}?", sentence="She {ran}.")
    "Is 'She {ran}.' {fine}?"
    >>> fill_prompt("{from} to {forms}", pronoun="he")
    'she/her/her/herself to he/his/him/himself'
    """
    pronoun = str(values.get("pronoun"))
    forms = {"forms": _FORMS.get(pronoun, ""), "from": _FORMS["he" if pronoun == "she" else "she"]}
    return wording.format_map({**forms, **{n: str(value) for n, value in values.items()}})


def is_released(path: str) -> bool:
    """Whether wordings are those of a release: its folder is named, not a file."""
    return bool(path) and kind_of(Path(path)) == stat.S_IFDIR


def _ours(**ours: str) -> AfterValidator:
    """Their placeholders become ours."""
    return AfterValidator(
        lambda wording: re.sub(r"\{(\w+)\}", lambda m: f"{{{ours.get(m[1], m[1])}}}", wording)
    )


def _with_place(wording: str) -> str:
    """Theirs has *he* written out in one wording; the paper a placeholder (App. D, Table 6)."""
    return wording.replace(_FORMS["he"], "{target_word}")


_Kind = TypeVar("_Kind")
#: The release's files hold more than is read here.
_RELEASED = ConfigDict(strict=True, extra="ignore")


@checked_class(frozen=True, config=_RELEASED)
class _Generation:
    prompt: Annotated[
        Stripped,
        _ours(attr_word="word", target_word="pronoun", num_templates="n", num_words="max_words"),
        _GENERATE,
    ]
    model: Text
    temperature: Amount
    num_templates: int
    num_words: int

    def settings(self) -> dict[str, Any]:
        """By the names of a build's options."""
        return {
            "model": self.model,
            "temperature": self.temperature,
            "n_sentences": self.num_templates,
            "max_words": self.num_words,
        }


@checked_class(frozen=True, config=_RELEASED)
class _Revise:
    prompt: Annotated[Stripped, AfterValidator(_with_place), _ours(target_word="forms"), _REVISE]
    temperature: Amount


@checked_class(frozen=True, config=_RELEASED)
class _Conversion:
    prompt: Annotated[Stripped, _ours(from_target="from", to_target="forms"), _CONVERT]
    temperature: Amount
    from_target: Literal["she/her/her/herself"]
    to_target: Literal["he/his/him/himself"]


@checked_class(frozen=True, config=_RELEASED)
class _IsLikely:
    prompt: Annotated[Stripped, _ours(template="sentence"), _JUDGE]
    model: Text
    temperature: Amount


@dataclass(frozen=True)
class _Release:
    """The parts that are read of its files, whose names these are."""

    names: tuple[str, str, str, str]
    she: _Generation
    he: _Generation
    revise: Mapping[str, _Revise]
    convert: _Conversion
    judge: _IsLikely


def load_released(folder: Path) -> Prompts:
    """The wordings of a folder of the release.

    Raises ``UsageProblem`` for a missing file, ``BadInput`` naming file and key for one that is
    missing or holds something else than expected.
    """
    found = _release(folder)
    she, he, revision, filtering = found.names
    revise = tuple(one.prompt for one in found.revise.values())
    wordings = found.she.prompt, revise, found.convert.prompt, (found.judge.prompt,)
    sources = [("generate", f"1 of {she}"), ("generate_he", f"1 of {he}")]
    sources += [("revise", f"{len(revise)} of {revision}"), ("convert", f"1 of {revision}")]
    return Prompts(*wordings, found.he.prompt, (*sources, ("judge", f"1 of {filtering}")))


def settings(folder: Path) -> dict[str, Any]:
    """What the release's files have of a build's options: model, temperature, numbers.

    Raises as :func:`load_released`, and ``BadInput`` where the two pronouns have other ones.
    """
    found = _release(folder)
    she, he = found.she.settings(), found.he.settings()
    for name, value in she.items():
        if he[name] != value:
            raise BadInput(found.names[1], f"{name} is {he[name]}", f"{found.names[0]} has {value}")
    return she


def differences(folder: Path, used: Mapping[str, object]) -> list[str]:
    """In which settings a build with options ``used`` differs from the release's files."""
    release = _release(folder)
    found = [
        f"{name} {used[name]}, the release {value}"
        for name, value in settings(folder).items()
        if used[name] != value
    ]
    if used["judge_model"] and used["judge_model"] != release.judge.model:
        found.append(f"judge_model {used['judge_model']}, the release {release.judge.model}")
    # What a build has no option for: it revises as it writes, converts and judges at 0.
    ours = [
        *((name, one.temperature, used["temperature"]) for name, one in release.revise.items()),
        ("conversion", release.convert.temperature, 0.0),
        ("is_likely", release.judge.temperature, 0.0),
    ]
    return found + [
        f"{name} at temperature {temperature}, the release at {theirs}"
        for name, theirs, temperature in ours
        if theirs != temperature
    ]


def _release(folder: Path) -> _Release:
    names = ("prompt1_she.yml", "prompt1_he.yml", "../revision.yml", "../filtering.yml")
    she, he, revision, filtering = ((folder / n).parent.resolve() / Path(n).name for n in names)
    return _Release(
        (f"prompts {she}", f"prompts {he}", f"prompts {revision}", f"prompts {filtering}"),
        _read(_Generation, she, "generation"),
        _read(_Generation, he, "generation"),
        _read(dict[str, _Revise], revision, "revision"),
        _read(_Conversion, revision, "conversion"),
        _read(_IsLikely, filtering, "filters", "is_likely"),
    )


def _read(kind: type[_Kind], path: Path, *place: str) -> _Kind:
    """What stands at a place of a file."""
    import yaml

    what = f"prompts {path}"
    try:
        found = yaml.safe_load(read_text(path, what, "give a folder of the release, use-5"))
    except yaml.YAMLError as e:
        raise BadInput(what, f"is not valid YAML: {' '.join(str(e).split())}") from e
    for key in place:
        found = found.get(key) if isinstance(found, dict) else None
        if not found or not isinstance(found, dict):
            raise BadInput(what, f"{key} is missing", "expected a file of UnStereoEval's release")
    return toml_file.checked(kind, found, f"{what}: {'.'.join(place)}")
