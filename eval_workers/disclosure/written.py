"""Let a chat model write neutral prompts, from a seed sentence such as "My friend owns a canoe".

Requests are recorded, retried and limited as in benchmark builds. In ``generation_request``, column
``benchmark`` is ``ledger_name``, ``purpose`` is `generate`, ``word`` is the seed sentence, and
``pronoun`` is empty. A request that was answered is never sent again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from importlib import resources
from math import ceil
from pathlib import Path
from typing import Annotated

from pydantic import AfterValidator, Field

from plumbline.eval_workers.chat.replies import sentences
from plumbline.eval_workers.chat.requests import ChatModel, Request
from plumbline.eval_workers.chat.session import Ask, Build
from plumbline.eval_workers.disclosure.neutral import FRIEND, bridged, gendered_problem
from plumbline.eval_workers.disclosure.prompt_sets import PromptRows, check_name
from plumbline.eval_workers.writing.wordings import fill_prompt
from plumbline.eval_workers.writing.written_sentences import repeats
from plumbline.warehouse.errors import UsageProblem
from plumbline.warehouse.text.placeholders import holding
from plumbline.warehouse.text.toml_file import Stripped, load, toml_table

_SHIPPED = "wording.toml"
_TOKENS_A_SENTENCE, _TOKENS_OF_TALK = 40, 64
_TEMPERATURE = 0.7
#: Maximum number of requests for a set, unless ``n_prompts`` needs more.
_ROUNDS = 20


@toml_table
class PromptWording:
    """The text of a request, with the placeholders ``{seed}`` and ``{n}``.

    A request asks for at most ``at_once`` sentences, because a model repeats itself when it writes
    many. (In section 2.2 of the paper, one request asks for all 200 sentences.) If ``as_json`` is
    true, the request also asks for a reply in JSON.
    """

    write: Annotated[Stripped, AfterValidator(holding(["seed", "n"]))]
    at_once: Annotated[int, Field(ge=1)] = 25
    description: str = ""
    as_json: bool = False


@dataclass(frozen=True)
class PromptSpec:
    """Settings for writing a set of ``n_prompts`` prompts.

    If ``allow_gendered`` is true, prompts may have gendered words.
    """

    model: ChatModel
    wording: PromptWording
    n_prompts: int = 200
    allow_gendered: bool = False

    @property
    def most_rounds(self) -> int:
        """Maximum number of requests: twice as many as needed, but at least 20."""
        return max(_ROUNDS, 2 * ceil(self.n_prompts / self.wording.at_once))

    def request(self, seed: str, round: int, n: int) -> Request:
        return self.model.request(
            "generate",
            fill_prompt(self.wording.write, seed=seed, n=n),
            word=seed,
            pronoun="",
            round=round,
            temperature=_TEMPERATURE,
            max_tokens=n * _TOKENS_A_SENTENCE + _TOKENS_OF_TALK,
            as_json=self.wording.as_json,
        )


def load_wording(path: Path | None = None) -> PromptWording:
    """Load the wording from a TOML file (default: the built-in file).

    Raises ``UsageProblem`` for a missing file, and ``BadInput`` for unknown keys or placeholders.
    """
    file = path or resources.files("plumbline.eval_workers.disclosure") / _SHIPPED
    return load(PromptWording, file, str(path or _SHIPPED))


def ledger_name(probe_set: str) -> str:
    """Return the name of a probe set's ledger. ``Build.benchmark`` has to be this name."""
    return f"probe/{probe_set}"


def write_probe(build: Build, name: str, seed: str, spec: PromptSpec) -> PromptRows:
    """Let the chat model write a set of prompts from a seed sentence, and import the set.

    The set has ``n_prompts`` prompts, or fewer if ``most_rounds`` requests don't give enough.
    Rejected sentences become rows of ``reject``. ``build.benchmark`` has to be
    ``ledger_name(name)``. Raises ``UsageProblem`` if the seed doesn't start with ``FRIEND``. Raises
    ``BadInput`` if no prompt is kept. Also raises the errors of ``check_name`` and ``Build.run``.
    """
    check_name(name)
    seed = " ".join(seed.split())
    if not seed.startswith(f"{FRIEND} "):
        raise UsageProblem(f"seed sentence {seed!r}", f"has to start with {FRIEND!r}")
    prompts = PromptRows(name, "", spec.allow_gendered)
    build.run([partial(_write, seed, spec, prompts)], "seed sentences")
    return prompts.publish(build.store, build.run_id)


async def _write(seed: str, spec: PromptSpec, prompts: PromptRows, ask: Ask) -> None:
    """Request sentences, round by round. Add each to ``prompts``, as a prompt or a reject."""
    kept = list[str]()
    for round in range(1, spec.most_rounds + 1):
        if not (n := min(spec.n_prompts - len(kept), spec.wording.at_once)):
            break
        reply, n_most = await ask(spec.request(seed, round, n)), len(kept) + n
        prompts.source_file = reply.request_id
        for position, text in enumerate(sentences(reply.text), 1):
            reason = _problem(text, spec, [seed, *kept])
            if not reason and len(kept) == n_most:
                reason = "is more than was asked for"
            if reason:
                prompts.reject(position, reason, text)
            else:
                kept.append(text)
                prompts.add(position, bridged(text), f"{len(kept):05d}")


def _problem(text: str, spec: PromptSpec, others: Sequence[str]) -> str:
    if not text.startswith(f"{FRIEND} "):
        return f"does not start with {FRIEND!r}"
    if not text.isprintable():
        return "holds characters that can't be printed"
    if text.endswith("?"):
        return "is a question"
    problem = None if spec.allow_gendered else gendered_problem(text)
    return problem or repeats(text, others)
