"""What a perturber is given and gives back, and the rule-based one behind that contract."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from plumbline.eval_workers.fairpair.perturbation.rules import Entity, Perturbed, perturb
from plumbline.eval_workers.fairpair.perturbation.terms import Terms, load
from plumbline.warehouse.errors import UsageProblem

#: Raised with every change of the rules that may change a text.
RULES_VERSION = 1


@dataclass(frozen=True)
class Wanted:
    """A text that is to be perturbed: prompt and continuation together.

    Attributes:
        text: begins with the prompt that names ``entity``.
        perturbed_prompt: the same prompt about ``counterpart``.
    """

    text: str
    perturbed_prompt: str
    entity: Entity
    counterpart: Entity
    axis: str
    language: str


class Perturber(Protocol):
    """Makes texts about somebody texts about a counterpart; ``name`` holds its version."""

    @property
    def name(self) -> str:
        """Column ``perturber``: two ways to perturb never share one."""
        ...

    def perturb(self, wanted: Sequence[Wanted]) -> Sequence[Perturbed]:
        """A perturbation, or the reason why it failed, for each text, in their order."""
        ...


class RulePerturber:
    """The rules of ``rules.py`` with one list of terms (the shipped one by default).

    >>> john, jane = Entity("John", "m"), Entity("Jane", "f")
    >>> wanted = Wanted("John is his own man.", "Jane is", john, jane, "gender", "en")
    >>> RulePerturber().perturb([wanted])[0].text
    'Jane is her own woman.'
    >>> RulePerturber().name.startswith("rules-1-")
    True
    """

    def __init__(self, terms: Terms | None = None) -> None:
        self._terms = load() if terms is None else terms

    @property
    def name(self) -> str:
        """``rules``, their version, and a hash of the terms (8 hex digits)."""
        terms = self._terms
        names = ("version", "language", "axis", "groups", "pronouns", "generic", "classes")
        content = {name: getattr(terms, name) for name in names}
        content |= {"file": "", "nouns": terms.noun_of, "titles": terms.title_of}
        # What is not in a file counts as empty: perturbations are kept under this name.
        none: frozenset[str] = frozenset()
        content |= {"first_names": {g: terms.first_names.get(g, none) for g in terms.groups}}
        text = json.dumps(content, sort_keys=True, default=_listed)
        return f"rules-{RULES_VERSION}-{hashlib.sha256(text.encode()).hexdigest()[:8]}"

    def perturb(self, wanted: Sequence[Wanted]) -> list[Perturbed]:
        """See ``Perturber``; raises ``UsageProblem`` for texts of another axis or language."""
        return [self._one(one) for one in wanted]

    def _one(self, one: Wanted) -> Perturbed:
        terms = self._terms
        theirs = (terms.axis, terms.language, set(terms.groups))
        if (one.axis, one.language, {one.entity.group, one.counterpart.group}) != theirs:
            what = f"{one.axis} in {one.language} ({one.entity.group}, {one.counterpart.group})"
            ours = f"{terms.axis} in {terms.language} ({', '.join(terms.groups)})"
            first, second = terms.groups
            fix = "give a list of terms for these prompts (--terms FILE)"
            if (one.axis, one.language) == theirs[:2]:
                fix = f'name their groups "{first}" and "{second}", or {fix}'
            raise UsageProblem(f"terms {terms.file}", f"are for {ours}, the prompts {what}", fix)
        return perturb(one.text, one.entity, one.counterpart, terms)


def _listed(value: Any) -> Any:
    return sorted(value)
