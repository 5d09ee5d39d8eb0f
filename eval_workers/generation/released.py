"""UnStereoEval's own wordings, read as they are from a clone of its release.

A folder such as ``benchmark-creation-configs/use-5`` has the request for sentences, one file per
pronoun, and beside the folder lie those to revise, convert and judge. Their placeholders become
ours; nothing of the files is kept in this project.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from plumbline.eval_workers.generation.prompts import FORMS, Prompts, made
from plumbline.warehouse.errors import BadInput
from plumbline.warehouse.text.toml_file import Section, read_text

#: Their placeholders and ours, by role. A revision names a pronoun by all its forms.
_OURS = {
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
    wordings = [wording.replace(FORMS["he"], "{target_word}") for wording in wordings]
    convert = revision.section("conversion")
    for key, pronoun in (("from_target", "she"), ("to_target", "he")):
        if convert.text(key) != FORMS[pronoun]:
            raise convert.fault(key, FORMS[pronoun])
    judge = filtering.section("filters").section("is_likely")
    given: dict[str, tuple[str, list[str]]] = {
        "generate": (she.what, [she.section("generation").text("prompt")]),
        "generate_he": (he.what, [he.section("generation").text("prompt")]),
        "revise": (revision.what, wordings),
        "convert": (revision.what, [convert.text("prompt")]),
        "judge": (filtering.what, [judge.text("prompt")]),
    }
    checked = {
        role: made(what, role.removesuffix("_he"), [_renamed(role, w) for w in own])
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
    ours = _OURS[role.removesuffix("_he")]
    return re.sub(r"\{(\w+)\}", lambda m: f"{{{ours.get(m[1], m[1])}}}", wording)
