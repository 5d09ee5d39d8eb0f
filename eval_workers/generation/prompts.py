"""The wordings that are put to the model: read from TOML or a release, checked, filled.

A folder of UnStereoEval's release, such as ``benchmark-creation-configs/use-5``, has the request
for sentences, one file per pronoun; beside the folder lie those to revise, convert and judge. They
are read as they are, and their placeholders become ours. Nothing of the files is kept here.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib import resources
from pathlib import Path
from string import Formatter
from typing import Any

from plumbline.warehouse.errors import BadInput
from plumbline.warehouse.text.toml_file import Section, parsed, read_text

#: Role -> placeholders each wording must hold, and those it may hold besides. ``forms`` will do
#: for ``pronoun``.
_PLACEHOLDERS: dict[str, tuple[frozenset[str], frozenset[str]]] = {
    "generate": (frozenset({"word", "pronoun", "n", "max_words"}), frozenset({"forms"})),
    "revise": (frozenset({"word", "pronoun", "sentence"}), frozenset({"max_words", "forms"})),
    "convert": (frozenset({"sentence", "pronoun"}), frozenset({"forms", "from"})),
    "judge": (frozenset({"sentence"}), frozenset()),
}
_SEVERAL = ("revise", "judge")
#: What ``{forms}`` stands for, and ``{from}`` for the other pronoun: subject, possessive, object
#: and reflexive, as UnStereoEval's wordings name a pronoun (its App. C has the same words).
_FORMS = {"she": "she/her/her/herself", "he": "he/his/him/himself"}
#: Their placeholders and ours, by role. A revision names a pronoun by all its forms.
_RELEASED = {
    "generate": {
        "attr_word": "word",
        "target_word": "pronoun",
        "num_templates": "n",
        "num_words": "max_words",
    },
    "revise": {"target_word": "forms"},
    "convert": {"from_target": "from", "to_target": "forms"},
    "judge": {"template": "sentence"},
}


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
    file = path or resources.files("plumbline.eval_workers.generation") / "prompts.toml"
    return parse(what, read_text(file, what))


def parse(what: str, text: str) -> Prompts:
    """The wordings of a TOML text; ``what`` names it in errors, which are as in ``load``."""
    content = parsed(text, what)
    known = ", ".join(_PLACEHOLDERS)
    if wrong := sorted(set(content) ^ set(_PLACEHOLDERS)):
        state = "is missing" if wrong[0] in _PLACEHOLDERS else "is not a role"
        raise BadInput(what, f"{wrong[0]} {state}", f"the roles are {known}")
    found = {role: _wordings(what, role, content[role]) for role in _PLACEHOLDERS}
    return Prompts(
        found["generate"][0],
        tuple(found["revise"]),
        found["convert"][0],
        tuple(found["judge"]),
        sources=tuple((role, f"{len(own)} of {what}") for role, own in found.items()),
    )


def _wordings(what: str, role: str, value: Any) -> list[str]:
    wordings = value if role in _SEVERAL and isinstance(value, list) else [value]
    if not wordings or not all(isinstance(wording, str) for wording in wordings):
        wanted = "text or a list of texts" if role in _SEVERAL else "text"
        raise BadInput(what, f"{role} has to be {wanted}")
    return _checked(what, role, wordings)


def _checked(what: str, role: str, wordings: list[str]) -> list[str]:
    """The wordings of a role, stripped; raises ``BadInput`` for wrong placeholders."""
    for number, wording in enumerate(wordings, 1):
        where = f"{role}, wording {number}" if role in _SEVERAL else role
        if problem := _problem(role, wording):
            required, further = _PLACEHOLDERS[role]
            names = ", ".join(f"{{{name}}}" for name in sorted(required | further))
            raise BadInput(what, f"{where}: {problem}", f"known here: {names}")
    return [wording.strip() for wording in wordings]


def _problem(role: str, wording: str) -> str | None:
    required, further = _PLACEHOLDERS[role]
    try:
        parts = list(Formatter().parse(wording))
    except ValueError as e:
        return f"{e}; a brace that is meant as such is written twice"
    fields = [(name, spec, change) for _, name, spec, change in parts if name is not None]
    for name, spec, change in fields:
        if name not in required | further or spec or change:
            written = name + (f"!{change}" if change else "") + (f":{spec}" if spec else "")
            return f"{{{written}}} is not a placeholder"
    found = {name for name, _, _ in fields}
    if missing := sorted(required - found - ({"pronoun"} if "forms" in found else set())):
        return f"{{{missing[0]}}} is missing"
    return None


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
    return bool(path) and Path(path).is_dir()


def load_released(folder: Path) -> Prompts:
    """The wordings of a folder of the release.

    Raises ``UsageProblem`` for a missing file, ``BadInput`` naming file and key for one that is
    missing or holds something else than expected.
    """
    she, he, revision, filtering = _files(folder)
    revise = revision.section("revision")
    wordings = [revise.section(name).text("prompt") for name in revise.content]
    if not wordings:
        raise revision.fault("revision", "at least one wording")
    # The file has *he* written out in one of them; the paper a placeholder (App. D, Table 6).
    wordings = [wording.replace(_FORMS["he"], "{target_word}") for wording in wordings]
    convert = revision.section("conversion")
    for key, pronoun in (("from_target", "she"), ("to_target", "he")):
        if convert.text(key) != _FORMS[pronoun]:
            raise convert.fault(key, _FORMS[pronoun])
    judge = filtering.section("filters").section("is_likely")
    given: dict[str, tuple[str, list[str]]] = {
        "generate": (she.what, [she.section("generation").text("prompt")]),
        "generate_he": (he.what, [he.section("generation").text("prompt")]),
        "revise": (revision.what, wordings),
        "convert": (revision.what, [convert.text("prompt")]),
        "judge": (filtering.what, [judge.text("prompt")]),
    }
    checked = {
        role: _checked(what, role.removesuffix("_he"), [_renamed(role, w) for w in own])
        for role, (what, own) in given.items()
    }
    return Prompts(
        checked["generate"][0],
        tuple(checked["revise"]),
        checked["convert"][0],
        tuple(checked["judge"]),
        checked["generate_he"][0],
        tuple((role, f"{len(own)} of {what}") for role, (what, own) in given.items()),
    )


def settings(folder: Path) -> dict[str, Any]:
    """What the release's files have of a build's options: model, temperature, numbers.

    Raises as :func:`load_released`, and ``BadInput`` where the two pronouns have other ones.
    """
    she, he, *_ = _files(folder)
    found, other = (_settings(section.section("generation")) for section in (she, he))
    for name, value in found.items():
        if other[name] != value:
            raise BadInput(he.what, f"{name} is {other[name]}", f"{she.what} has {value}")
    return found


def differences(folder: Path, used: Mapping[str, object]) -> list[str]:
    """In which settings a build with options ``used`` differs from the release's files."""
    _, _, revision, filtering = _files(folder)
    found = [
        f"{name} {used[name]}, the release {value}"
        for name, value in settings(folder).items()
        if used[name] != value
    ]
    revise = revision.section("revision")
    judge = filtering.section("filters").section("is_likely")
    if used["judge_model"] and used["judge_model"] != judge.text("model"):
        found.append(f"judge_model {used['judge_model']}, the release {judge.text('model')}")
    # What a build has no option for: it revises as it writes, converts and judges at 0.
    ours: list[tuple[str, Section, object]] = [
        *((name, revise.section(name), used["temperature"]) for name in revise.content),
        ("conversion", revision.section("conversion"), 0.0),
        ("is_likely", judge, 0.0),
    ]
    for name, section, temperature in ours:
        if section.number("temperature") != temperature:
            found.append(
                f"{name} at temperature {temperature}, the release at "
                f"{section.number('temperature')}"
            )
    return found


def _settings(generation: Section) -> dict[str, Any]:
    return {
        "model": generation.text("model"),
        "temperature": generation.number("temperature"),
        "n_sentences": int(generation.number("num_templates")),
        "max_words": int(generation.number("num_words")),
    }


def _files(folder: Path) -> tuple[Section, Section, Section, Section]:
    beside = ("../revision.yml", "../filtering.yml")
    paths = [folder / name for name in ("prompt1_she.yml", "prompt1_he.yml", *beside)]
    she, he, revision, filtering = (_read(path.parent.resolve() / path.name) for path in paths)
    return she, he, revision, filtering


def _read(path: Path) -> Section:
    import yaml

    what = f"prompts {path}"
    try:
        content = yaml.safe_load(read_text(path, what, "give a folder of the release, use-5"))
    except yaml.YAMLError as e:
        raise BadInput(what, f"is not valid YAML: {' '.join(str(e).split())}") from e
    if not isinstance(content, dict):
        raise BadInput(what, "holds no keys", "expected a file of UnStereoEval's release")
    return Section(what, content)


def _renamed(role: str, wording: str) -> str:
    ours = _RELEASED[role.removesuffix("_he")]
    return re.sub(r"\{(\w+)\}", lambda m: f"{{{ours.get(m[1], m[1])}}}", wording)
