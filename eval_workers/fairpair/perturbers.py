"""Perturbers turn a text about one person into the same text about another, the counterpart.

``RulePerturber`` follows the rules of ``text_rules.py``. ``ChatPerturber`` sends texts to a chat
model. Its requests are stored in the table ``generation_request``, like those of a benchmark build.
There, ``benchmark`` is ``perturb/`` + probe set; ``word`` and ``pronoun`` hold the two names.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import resources
from pathlib import Path
from typing import Annotated, Any, TypeAlias

from pydantic import AfterValidator

from plumbline.eval_workers.chat.requests import ChatModel, Reply
from plumbline.eval_workers.chat.session import Build
from plumbline.eval_workers.fairpair.text_rules import Entity, Perturbed, perturb
from plumbline.eval_workers.fairpair.text_words import NO_TERMS, load
from plumbline.eval_workers.writing.wordings import fill_prompt
from plumbline.warehouse.errors import UsageProblem
from plumbline.warehouse.text import toml_file
from plumbline.warehouse.text.placeholders import holding
from plumbline.warehouse.text.toml_file import Stripped, Text, toml_table

REFUSED = "the model did not answer"
CUT = "the model's answer was cut"
#: Increase this whenever a change to the rules may change a perturbed text.
RULES_VERSION = 2


@dataclass(frozen=True)
class Original:
    """A text to perturb: a prompt about ``entity``, followed by its continuation.

    ``perturbed_prompt`` is the same prompt about ``counterpart``.
    """

    text: str
    perturbed_prompt: str
    entity: Entity
    counterpart: Entity
    axis: str


class RulePerturber:
    """Perturbs gender in English texts by rules. For other axes, it only replaces the name.

    >>> john, jane = Entity("John", "m"), Entity("Jane", "f")
    >>> text = Original("John is his own man.", "Jane is", john, jane, "gender")
    >>> RulePerturber().perturb([text])[0].text
    'Jane is her own woman.'
    >>> RulePerturber().name.startswith("rules-2-")
    True
    """

    @property
    def name(self) -> str:
        """The word `rules`, the rules' version, and a hash of the word lists (8 hex digits)."""
        terms = load()
        names = ("version", "language", "axis", "groups", "pronouns", "generic", "classes")
        content = {name: getattr(terms, name) for name in names}
        content |= {"file": "", "nouns": terms.noun_of, "titles": terms.title_of}
        content["first_names"] = {g: terms.first_names.get(g, frozenset()) for g in terms.groups}
        text = json.dumps(content, sort_keys=True, default=sorted)
        return f"rules-{RULES_VERSION}-{hashlib.sha256(text.encode()).hexdigest()[:8]}"

    def perturb(self, texts: Sequence[Original]) -> list[Perturbed]:
        """Return each text's perturbation, or the reason why it has none, in the texts' order.

        Call ``check_rules`` first.
        """
        terms = {load().axis: load()}
        return [
            perturb(one.text, one.entity, one.counterpart, terms.get(one.axis, NO_TERMS))
            for one in texts
        ]


def check_rules(prompts: Iterable[Mapping[str, Any]]) -> None:
    """Raise ``UsageProblem`` if the rules can't perturb a prompt, because it isn't English.

    ``prompts`` are rows of ``probe_prompt``. The rules accept other axes in any language.
    """
    rules = load()
    for row in prompts:
        groups = [row[name] or "" for name in ("entity_group", "perturbed_group")]
        is_known = row["language"] == rules.language and {*groups} == {*rules.groups}
        if row["axis"] == rules.axis and not is_known:
            problem = f"are for gender in en (m, f), not in {row['language']} ({', '.join(groups)})"
            raise UsageProblem("the rules", problem, "give --perturber MODEL")


_PLACES = holding(("text", "name", "counterpart"), ("group", "counterpart_group"))
#: A reply may have this many more tokens than the text has characters.
_TOKENS_OF_TALK = 64


@toml_table
class PerturbWording:
    """The template of a request. ``groups`` gives the word for a group, by default its name."""

    perturb: Annotated[Stripped, AfterValidator(_PLACES)]
    groups: Mapping[str, Text] = field(default_factory=dict)


def load_wording(path: Path | None = None) -> PerturbWording:
    """Read a request's template from a file, by default from ``perturb_prompt.toml``.

    Raises ``UsageProblem`` if there is no such file, ``BadInput`` for a wrong key or placeholder.
    """
    file = path or resources.files(__package__) / "perturb_prompt.toml"
    return toml_file.load(PerturbWording, file, str(path or file.name))


def ledger_name(probe_set: str) -> str:
    """Return the value of ``Build.benchmark`` for perturbing a probe set."""
    return f"perturb/{probe_set}"


@dataclass(frozen=True)
class ChatPerturber:
    """Asks ``model`` at temperature 0 to perturb the texts that have no stored reply.

    ``build.benchmark`` must be ``ledger_name(probe_set)``. The budget of ``build`` covers all
    requests for this probe set. A bad answer isn't requested again; ``perturb_set`` rejects it.
    """

    build: Build
    model: ChatModel
    wording: PerturbWording

    @property
    def name(self) -> str:
        """The model's name, and a hash of the wording and the seed (8 hex digits)."""
        groups = json.dumps(self.wording.groups, sort_keys=True) if self.wording.groups else ""
        text = f"{self.model.seed} {self.wording.perturb}{groups}"
        return f"{self.model.name}-{hashlib.sha256(text.encode()).hexdigest()[:8]}"

    def perturb(self, texts: Sequence[Original]) -> list[Perturbed]:
        """Return each text's perturbation, or the reason why it has none, in the texts' order.

        Raises what ``Build.run`` raises; call again to resume.
        """
        requests, words = [], self.wording.groups
        for text in texts:
            name, counterpart = text.entity, text.counterpart
            prompt = fill_prompt(
                self.wording.perturb,
                text=text.text,
                name=name.name,
                counterpart=counterpart.name,
                group=words.get(name.group, name.group),
                counterpart_group=words.get(counterpart.group, counterpart.group),
            )
            request = self.model.request(
                *("perturb", prompt),
                word=name.name,
                pronoun=counterpart.name,
                round=1,
                temperature=0,
                max_tokens=len(text.text) + _TOKENS_OF_TALK,
            )
            requests.append(request)
        return list(map(_perturbed, self.build.replies(requests, "texts")))


#: Turns texts about a person into texts about a counterpart. Its ``name`` is the value of column
#: ``perturber``, and must change if results may change.
Perturber: TypeAlias = RulePerturber | ChatPerturber


def _perturbed(reply: Reply) -> Perturbed:
    text = reply.text.strip()
    if not text:
        return Perturbed(None, REFUSED)
    return Perturbed(None, CUT) if reply.finish_reason == "length" else Perturbed(text)
