"""Let a chat model write neutral prompts, from seed sentences such as "My friend owns a canoe".

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
from typing import Annotated, NamedTuple

from pydantic import AfterValidator, Field

from plumbline.eval_workers.chat.replies import sentences
from plumbline.eval_workers.chat.requests import ChatModel, Request
from plumbline.eval_workers.chat.session import Ask, Build
from plumbline.eval_workers.disclosure.neutral import FRIEND, bridged, gendered_problem
from plumbline.eval_workers.disclosure.prompt_sets import ImportedProbe, PromptRows, check_name
from plumbline.eval_workers.writing.wordings import fill_prompt
from plumbline.eval_workers.writing.written_sentences import repeats
from plumbline.warehouse.errors import UsageProblem
from plumbline.warehouse.text.placeholders import holding
from plumbline.warehouse.text.toml_file import Stripped, load, toml_table

_SHIPPED = "wording.toml"
_TOKENS_A_SENTENCE, _TOKENS_OF_TALK = 40, 64
_TEMPERATURE = 0.7
#: Maximum number of requests per seed sentence, unless ``n_prompts`` needs more.
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
    """Settings for writing a set of prompts. Each seed sentence gives ``n_prompts`` prompts.

    If ``allow_gendered`` is true, prompts may have gendered words.
    """

    model: ChatModel
    wording: PromptWording
    n_prompts: int = 200
    allow_gendered: bool = False

    @property
    def most_rounds(self) -> int:
        """Maximum number of requests per seed: twice as many as needed, but at least 20."""
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


class Candidate(NamedTuple):
    """A sentence from a reply. ``reason`` is empty, or says why the sentence is rejected."""

    text: str
    request_id: str
    position: int
    reason: str = ""


def load_wording(path: Path | None = None) -> PromptWording:
    """Load the wording from a TOML file (default: the built-in file).

    Raises ``UsageProblem`` for a missing file, and ``BadInput`` for unknown keys or placeholders.
    """
    file = path or resources.files("plumbline.eval_workers.disclosure") / _SHIPPED
    return load(PromptWording, file, str(path or _SHIPPED))


def ledger_name(probe_set: str) -> str:
    """Return the name of a probe set's ledger. ``Build.benchmark`` has to be this name."""
    return f"probe/{probe_set}"


def write_probe(build: Build, name: str, seeds: Sequence[str], spec: PromptSpec) -> ImportedProbe:
    """Let the chat model write a set of prompts, and import the set.

    Each seed sentence gives ``n_prompts`` prompts, or fewer if ``most_rounds`` requests don't give
    enough. If there are several seed sentences, the column ``topic`` contains each prompt's seed
    sentence. Rejected sentences become rows of ``reject``. The limits of ``build.server`` are for
    the whole set. ``build.benchmark`` has to be ``ledger_name(name)``. Raises ``UsageProblem`` if a
    seed doesn't start with ``FRIEND``, or if there are no seeds. Raises ``BadInput`` if no prompt
    is kept. Also raises the errors of ``check_name`` and ``Build.run``.
    """
    check_name(name)
    distinct = list(dict.fromkeys(" ".join(seed.split()) for seed in seeds))
    if not distinct or not all(seed.startswith(f"{FRIEND} ") for seed in distinct):
        raise UsageProblem("seed sentences", f"each has to start with {FRIEND!r}")
    kept, prompts = list[str](), PromptRows(name, "", spec.allow_gendered)
    for seed in distinct:
        (candidates,) = build.run([partial(_write, seed, spec, tuple(kept))], "seed sentences")
        columns = {"topic": seed} if len(distinct) > 1 else {}
        for candidate in candidates:
            prompts.source_file = candidate.request_id
            if candidate.reason:
                prompts.reject(candidate.position, candidate.reason, candidate.text)
            else:
                kept.append(candidate.text)
                prompt_id = f"{len(prompts.rows) + 1:05d}"
                prompts.add(candidate.position, bridged(candidate.text), prompt_id, **columns)
    return prompts.publish(build.store, build.run_id)


async def _write(seed: str, spec: PromptSpec, others: Sequence[str], ask: Ask) -> list[Candidate]:
    """Request sentences for a seed, round by round. ``others`` are the sentences of other seeds."""
    candidates, kept = list[Candidate](), list[str]()
    for round in range(1, spec.most_rounds + 1):
        if not (n := min(spec.n_prompts - len(kept), spec.wording.at_once)):
            break
        reply, n_most = await ask(spec.request(seed, round, n)), len(kept) + n
        for position, text in enumerate(sentences(reply.text), 1):
            reason = _problem(text, spec, [seed, *others, *kept])
            if not reason and len(kept) == n_most:
                reason = "is more than was asked for"
            if not reason:
                kept.append(text)
            candidates.append(Candidate(text, reply.request_id, position, reason))
    return candidates


def _problem(text: str, spec: PromptSpec, others: Sequence[str]) -> str:
    if not text.startswith(f"{FRIEND} "):
        return f"does not start with {FRIEND!r}"
    if not text.isprintable():
        return "holds characters that can't be printed"
    if text.endswith("?"):
        return "is a question"
    problem = None if spec.allow_gendered else gendered_problem(text)
    if problem is None and bridged(text) in set(map(bridged, others)):
        problem = "repeats another sentence"
    return problem or repeats(text, others)
