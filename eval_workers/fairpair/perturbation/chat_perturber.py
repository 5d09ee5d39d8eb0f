"""The perturber that sends texts to a chat model, with the ledger, retries and budget of builds.

Rows of ``generation_request`` in the partition ``perturb/`` + probe set hold the two names as seed
word and pronoun.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib import resources
from pathlib import Path
from typing import Annotated

from pydantic import AfterValidator

from plumbline.eval_workers.chat.chat_session import Build
from plumbline.eval_workers.chat.requests import ChatModel, Reply, Request
from plumbline.eval_workers.fairpair.perturbation.perturber import Original
from plumbline.eval_workers.fairpair.perturbation.text_rules import Perturbed
from plumbline.eval_workers.writing.wordings import fill_prompt
from plumbline.warehouse.text.placeholders import holding
from plumbline.warehouse.text.toml_file import Stripped, Text, load, toml_table

REFUSED = "the model did not answer"
CUT = "the model's answer was cut"

_SHIPPED = "perturb_prompt.toml"
_PLACES = holding(("text", "name", "counterpart"), ("group", "counterpart_group"))
#: Most tokens of a reply besides those of the text, which has at most one a character.
_TOKENS_OF_TALK = 64


@toml_table
class PerturbWording:
    """A request's template, and its words for groups; a group without a word keeps its name."""

    perturb: Annotated[Stripped, AfterValidator(_PLACES)]
    groups: Mapping[str, Text] = field(default_factory=dict)


def load_wording(path: Path | None = None) -> PerturbWording:
    """Read the wording of a file, or the packaged one.

    Raises ``UsageProblem`` when there is no such file, ``BadInput`` for a wrong key or placeholder.
    """
    file = path or resources.files(__package__) / _SHIPPED
    return load(PerturbWording, file, str(path or _SHIPPED))


def ledger_name(probe_set: str) -> str:
    """Value of ``Build.benchmark`` for perturbing a probe set."""
    return f"perturb/{probe_set}"


@dataclass(frozen=True)
class LlmPerturber:
    """Sends ``model`` each text without a reply in ``build``'s ledger, at temperature 0.

    ``build.benchmark`` has to be the ``ledger_name`` of the probe set. The budget covers all
    perturbing of the set. Every text is sent once; ``perturb_set`` rejects bad answers.
    """

    build: Build
    model: ChatModel
    wording: PerturbWording

    @property
    def name(self) -> str:
        """Model name, and a hash of the wording and the seed (8 hex digits)."""
        groups = json.dumps(self.wording.groups, sort_keys=True) if self.wording.groups else ""
        text = f"{self.model.seed} {self.wording.perturb}{groups}"
        return f"{self.model.name}-{hashlib.sha256(text.encode()).hexdigest()[:8]}"

    def perturb(self, texts: Sequence[Original]) -> list[Perturbed]:
        """See ``Perturber``; raises as ``Build.run``, and resumes when called again."""
        return [_perturbed(r) for r in self.build.replies(list(map(self._request, texts)), "texts")]

    def _request(self, text: Original) -> Request:
        name, counterpart, words = text.entity, text.counterpart, self.wording.groups
        prompt = fill_prompt(
            self.wording.perturb,
            text=text.text,
            name=name.name,
            counterpart=counterpart.name,
            group=words.get(name.group, name.group),
            counterpart_group=words.get(counterpart.group, counterpart.group),
        )
        return self.model.request(
            "perturb",
            prompt,
            word=name.name,
            pronoun=counterpart.name,
            round=1,
            temperature=0,
            max_tokens=len(text.text) + _TOKENS_OF_TALK,
        )


def _perturbed(reply: Reply) -> Perturbed:
    text = reply.text.strip()
    if not text:
        return Perturbed(None, REFUSED)
    return Perturbed(None, CUT) if reply.finish_reason == "length" else Perturbed(text)
