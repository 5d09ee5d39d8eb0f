"""Wordings of the requests to a model: read from TOML or a release, checked, filled.

A folder of UnStereoEval's release (``benchmark-creation-configs/use-5``) has the wordings that ask
for sentences, by pronoun. Files next to the folder have the wordings to revise, convert and judge.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Sequence
from importlib import resources
from pathlib import Path
from typing import Annotated, Literal, TypeVar

from pydantic import AfterValidator, ConfigDict, Field
from pydantic.dataclasses import dataclass as checked_class

from plumbline.eval_workers.chat.requests import Pronoun, Purpose
from plumbline.warehouse.errors import BadInput
from plumbline.warehouse.text import toml_file
from plumbline.warehouse.text.placeholders import holding
from plumbline.warehouse.text.toml_file import OneOrMore, Stripped, read_text, toml_table

_Kind = TypeVar("_Kind")
#: Pronoun -> its forms: subject, possessive, object, reflexive, as in UnStereoEval's wordings (App.
#: C). They fill ``{forms}`` in requests for the pronoun, ``{from}`` in requests for the other.
_FORMS = {"she": "she/her/her/herself", "he": "he/his/him/himself"}
_GENERATE = AfterValidator(holding(["word", "pronoun|forms", "n", "max_words"]))
_REVISE = AfterValidator(holding(["word", "pronoun|forms", "sentence"], ["max_words"]))
_CONVERT = AfterValidator(holding(["sentence", "pronoun|forms"], ["from"]))
_JUDGE = AfterValidator(holding(["sentence"]))


@toml_table
class Wordings:
    """Wordings by role; the wordings of ``revise`` and ``judge`` are used in turn.

    ``as_json``: the requests ask for the JSON forms of their replies. ``generate_he``, if any, asks
    for sentences with *he*.
    """

    generate: Annotated[Stripped, _GENERATE]
    revise: Annotated[tuple[Annotated[Stripped, _REVISE], ...], OneOrMore, Field(min_length=1)]
    convert: Annotated[Stripped, _CONVERT]
    judge: Annotated[tuple[Annotated[Stripped, _JUDGE], ...], OneOrMore, Field(min_length=1)]
    as_json: bool = False
    generate_he: str | None = None

    def of(self, purpose: Purpose, pronoun: Pronoun) -> Sequence[str]:
        """The wordings of requests for a purpose, about a pronoun."""
        if purpose == "generate" and pronoun == "he" and self.generate_he:
            return [self.generate_he]
        found: str | Sequence[str] = getattr(self, purpose)
        return [found] if isinstance(found, str) else found

    @property
    def hash(self) -> str:
        """Hash of all wordings (16 hex digits), recorded with a build."""
        roles: list[object] = [self.generate, self.revise, self.convert, self.judge]
        roles += [self.generate_he] if self.generate_he else []
        return hashlib.sha256(json.dumps(roles).encode()).hexdigest()[:16]


def load(path: Path | None = None) -> Wordings:
    """Read the wordings of a TOML file or a folder of the release; by default Plumbline's own.

    Raises ``UsageProblem`` when there is no such file, ``BadInput`` naming the role (and the number
    of the wording, from 1) for an unknown or missing placeholder.

    >>> len(load().revise), len(load().judge)
    (4, 2)
    """
    if path and path.is_dir():
        return load_released(path)
    file = path or resources.files("plumbline.eval_workers.writing") / "prompts.toml"
    what = f"prompts {path or 'of Plumbline'}"
    return toml_file.load(Wordings, file, what, generate_he=None)


def fill_prompt(wording: str, **values: object) -> str:
    """Fill the placeholders of a wording; braces in values are kept.

    >>> fill_prompt("Is '{sentence}' {{fine}}?", sentence="She {ran}.")
    "Is 'She {ran}.' {fine}?"
    >>> fill_prompt("{from} to {forms}", pronoun="he")
    'she/her/her/herself to he/his/him/himself'
    """
    pronoun = str(values.get("pronoun"))
    forms = {"forms": _FORMS.get(pronoun, ""), "from": _FORMS["he" if pronoun == "she" else "she"]}
    return wording.format_map({**forms, **{n: str(value) for n, value in values.items()}})


def _ours(**names: str) -> AfterValidator:
    """Replace the release's placeholders by ours, ``theirs=ours``."""
    return AfterValidator(
        lambda wording: re.sub(r"\{(\w+)\}", lambda m: f"{{{names.get(m[1], m[1])}}}", wording)
    )


#: Other keys are ignored: the release's files hold more than is read here.
_released = checked_class(frozen=True, config=ConfigDict(strict=True, extra="ignore"))


@_released
class _Generation:
    prompt: Annotated[
        Stripped,
        _ours(attr_word="word", target_word="pronoun", num_templates="n", num_words="max_words"),
        _GENERATE,
    ]


@_released
class _Revise:
    prompt: Annotated[
        Stripped,
        # One released wording has the forms of *he*, the paper (App. D, Table 6) a placeholder.
        AfterValidator(lambda wording: wording.replace(_FORMS["he"], "{target_word}")),
        _ours(target_word="forms"),
        _REVISE,
    ]


@_released
class _Conversion:
    prompt: Annotated[Stripped, _ours(from_target="from", to_target="forms"), _CONVERT]
    from_target: Literal["she/her/her/herself"]
    to_target: Literal["he/his/him/himself"]


@_released
class _IsLikely:
    prompt: Annotated[Stripped, _ours(template="sentence"), _JUDGE]


def load_released(folder: Path) -> Wordings:
    """Read the wordings of a folder of the release.

    Raises ``UsageProblem`` for a missing file, ``BadInput`` naming file and key.
    """
    names = ("prompt1_she.yml", "prompt1_he.yml", "../revision.yml", "../filtering.yml")
    she, he, revision, filtering = ((folder / n).parent.resolve() / Path(n).name for n in names)
    revise = _read(dict[str, _Revise], revision, "revision").values()
    content = {
        "generate": _read(_Generation, she, "generation").prompt,
        "generate_he": _read(_Generation, he, "generation").prompt,
        "revise": [part.prompt for part in revise],
        "convert": _read(_Conversion, revision, "conversion").prompt,
        "judge": _read(_IsLikely, filtering, "filters", "is_likely").prompt,
    }
    return toml_file.checked(Wordings, content, f"prompts {folder}")


def _read(kind: type[_Kind], path: Path, *place: str) -> _Kind:
    """The part of a YAML file at a path of keys, checked. Raises ``BadInput`` if it is missing."""
    import yaml

    what = f"prompts {path}"
    try:
        part = yaml.safe_load(read_text(path, what, "give a folder of the release, use-5"))
    except (yaml.YAMLError, ValueError) as e:  # ValueError: an invalid date
        raise BadInput(what, f"is not valid YAML: {' '.join(str(e).split())}") from e
    for key in place:
        part = part.get(key) if isinstance(part, dict) else None
        if not part or not isinstance(part, dict):
            raise BadInput(what, f"{key} is missing", "expected a file of UnStereoEval's release")
    return toml_file.checked(kind, part, f"{what}: {'.'.join(place)}")
