"""The wordings that are put to the model: read from TOML, checked, filled."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, field
from importlib import resources
from pathlib import Path
from string import Formatter
from typing import Any

from plumbline.warehouse.errors import BadInput
from plumbline.warehouse.text.toml_file import parsed, read_text

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
FORMS = {"she": "she/her/her/herself", "he": "he/his/him/himself"}


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
    """Read the wordings of a file, or those that come with Plumbline.

    Raises ``UsageProblem`` when there is no such file, ``BadInput`` naming the role (and which of
    its wordings, from 1) for a placeholder that is unknown there or missing.

    >>> len(load().revise), len(load().judge)
    (4, 2)
    """
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
    return made(what, role, wordings)


def made(what: str, role: str, wordings: list[str]) -> list[str]:
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
    forms = {"forms": FORMS.get(pronoun, ""), "from": FORMS["he" if pronoun == "she" else "she"]}
    return wording.format_map({**forms, **{n: str(value) for n, value in values.items()}})
