"""Contract of perturbers, and the rule-based one."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from plumbline.eval_workers.fairpair.perturbation.terms import Terms, load
from plumbline.eval_workers.fairpair.perturbation.text_rules import Entity, Perturbed, perturb
from plumbline.warehouse.errors import UsageProblem

#: Increased with every change of the rules that may change a text.
RULES_VERSION = 2


@dataclass(frozen=True)
class Original:
    """Text to perturb: the prompt that names ``entity``, and its continuation.

    ``perturbed_prompt`` is the same prompt about ``counterpart``.
    """

    text: str
    perturbed_prompt: str
    entity: Entity
    counterpart: Entity
    axis: str
    language: str


class Perturber(Protocol):
    """Turns texts about a person into texts about a counterpart."""

    @property
    def name(self) -> str:
        """Value of column ``perturber``; it changes with anything that may change a result."""
        ...

    def perturb(self, texts: Sequence[Original]) -> Sequence[Perturbed]:
        """Perturbations of the texts in order; a failed one has a reason instead of a text."""
        ...


class RulePerturber:
    """The rules of ``text_rules.py`` with a list of terms (by default the packaged one).

    >>> john, jane = Entity("John", "m"), Entity("Jane", "f")
    >>> text = Original("John is his own man.", "Jane is", john, jane, "gender", "en")
    >>> RulePerturber().perturb([text])[0].text
    'Jane is her own woman.'
    >>> RulePerturber().name.startswith("rules-2-")
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
        content["first_names"] = {g: terms.first_names.get(g, frozenset()) for g in terms.groups}
        text = json.dumps(content, sort_keys=True, default=sorted)
        return f"rules-{RULES_VERSION}-{hashlib.sha256(text.encode()).hexdigest()[:8]}"

    def perturb(self, texts: Sequence[Original]) -> list[Perturbed]:
        """See ``Perturber``; ``UsageProblem`` for texts of another axis, language or groups."""
        terms = self._terms
        for text in texts:
            groups = text.entity.group, text.counterpart.group
            same_language = (text.axis, text.language) == (terms.axis, terms.language)
            if same_language and set(groups) == set(terms.groups):
                continue
            terms_text = f"{terms.axis} in {terms.language} ({', '.join(terms.groups)})"
            problem = f"are for {terms_text}, the prompts {text.axis} in {text.language}"
            fix = "give a list of terms for these prompts (--terms FILE)"
            if same_language:
                fix = 'name their groups "{}" and "{}", or {}'.format(*terms.groups, fix)
            raise UsageProblem(f"terms {terms.file}", f"{problem} ({', '.join(groups)})", fix)
        return [perturb(text.text, text.entity, text.counterpart, terms) for text in texts]
