"""Sentences for a seed word: which requests come next, and what became of every sentence.

``progress`` is a pure function of the replies so far. An interrupted build resumes by calling it
again with the replies of the ledger, and the order in which replies arrive changes nothing.

For each pronoun, sentences are asked for; those without the word or the pronoun are sent back, each
up to ``n_revisions`` times with the wordings in turn; when some are still wanting they are asked
for again, up to ``generate_rounds`` times. The sentences of `she` are settled before those of `he`
are compared with them, since two that differ in their pronouns alone would be the same pair twice.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import get_args

from plumbline.eval_workers.chat.replies import sentences
from plumbline.eval_workers.chat.requests import ChatModel, Pronoun, Purpose, Reply, Request
from plumbline.eval_workers.writing.checks import Verdict, check
from plumbline.eval_workers.writing.prompts import Prompts, fill_prompt

PRONOUNS: tuple[Pronoun, ...] = get_args(Pronoun)

#: Times each wording of a revision is tried: UnStereoEval's released pipeline gives a sentence up
#: after 40 tries, its four wordings in turn (`src/run_pipeline_revision.py`).
TRIES_A_WORDING = 10

#: Tokens a reply may have: for each word wanted, for the frame of each sentence, for talk.
_TOKENS_A_WORD, _TOKENS_A_SENTENCE, _TOKENS_OF_TALK = 4, 16, 64


@dataclass(frozen=True)
class WritingSpec:
    """What is to be written for each seed word.

    Attributes:
        n_sentences: wanted for each pronoun.
        max_words: most words of a sentence, between white space, as they are asked for.
        reject_longer: whether longer sentences are rejected; UnStereoEval kept them.
        revise_rounds: most times a sentence is sent back; ``None`` for ten with each wording.
        judge: model that judges pairs; ``None`` for the one that writes.
        generate_rounds: times sentences are asked for, the first time included.
    """

    model: ChatModel
    prompts: Prompts
    n_sentences: int = 5
    max_words: int = 10
    reject_longer: bool = True
    temperature: float = 0.7
    revise_rounds: int | None = None
    generate_rounds: int = 3
    judge: ChatModel | None = None

    @property
    def n_revisions(self) -> int:
        """Most times a sentence is sent back.

        >>> from plumbline.eval_workers.writing.prompts import load
        >>> WritingSpec(ChatModel("m"), load()).n_revisions  # ten with each of four wordings
        40
        """
        if self.revise_rounds is not None:
            return self.revise_rounds
        return TRIES_A_WORDING * len(self.prompts.revise)

    def generate(self, word: str, pronoun: Pronoun, round: int, n: int) -> Request:
        """The request for n sentences."""
        values = {"word": word, "pronoun": pronoun, "n": n, "max_words": self.max_words}
        prompt = fill_prompt(self.prompts.generating(pronoun), **values)
        return self._request("generate", prompt, word, pronoun, round, n)

    def revise(self, word: str, pronoun: Pronoun, round: int, sentence: str) -> Request:
        """The request to put right a sentence, with the wording whose turn it is in this round."""
        wordings = self.prompts.revise
        values = {"word": word, "pronoun": pronoun, "max_words": self.max_words}
        prompt = fill_prompt(wordings[(round - 1) % len(wordings)], sentence=sentence, **values)
        return self._request("revise", prompt, word, pronoun, round, 1)

    def _request(
        self, purpose: Purpose, prompt: str, word: str, pronoun: Pronoun, round: int, n: int
    ) -> Request:
        tokens = n * (_TOKENS_A_WORD * self.max_words + _TOKENS_A_SENTENCE) + _TOKENS_OF_TALK
        return self.model.request(
            purpose,
            prompt,
            word=word,
            pronoun=pronoun,
            round=round,
            temperature=self.temperature,
            max_tokens=tokens,
        )


@dataclass(frozen=True)
class Sentence:
    """A sentence of a reply, by its place in it (from 1)."""

    text: str
    word: str
    pronoun: Pronoun
    request_id: str
    position: int


@dataclass(frozen=True)
class Rejected:
    """A sentence that is not used, and why."""

    sentence: Sentence
    reason: str


@dataclass(frozen=True)
class Progress:
    """How far a seed word is; it is done when there are no ``requests``.

    ``n_in`` sentences were read; each is kept, rejected, revised (another has taken its place), or
    waiting for its revision.
    """

    word: str
    requests: tuple[Request, ...]
    kept: tuple[Sentence, ...]
    rejected: tuple[Rejected, ...]
    n_in: int
    n_revised: int
    n_waiting: int

    def balances(self) -> bool:
        """Whether every sentence that was read is accounted for once."""
        fates = len(self.kept) + len(self.rejected) + self.n_revised + self.n_waiting
        return self.n_in == fates


@dataclass
class _Account:
    """Sentences of a seed word as they are settled."""

    spec: WritingSpec
    word: str
    replies: Mapping[str, Reply]
    kept: list[Sentence] = field(default_factory=list)
    rejected: list[Rejected] = field(default_factory=list)
    drafted: set[tuple[str, str, int]] = field(default_factory=set)
    n_in: int = 0
    n_revised: int = 0
    n_waiting: int = 0

    def read(self, request: Request) -> list[Sentence] | None:
        """The sentences of a request's reply; ``None`` before it has arrived."""
        reply = self.replies.get(request.request_id)
        if reply is None:
            return None
        pronoun: Pronoun = "she" if request.pronoun == "she" else "he"
        found = [
            Sentence(text, self.word, pronoun, request.request_id, position)
            for position, text in enumerate(sentences(reply.text), 1)
        ]
        self.n_in += len(found)
        return found

    def verdict(self, sentence: Sentence) -> Verdict:
        return check(
            sentence.text,
            word=self.word,
            pronoun=sentence.pronoun,
            max_words=self.spec.max_words if self.spec.reject_longer else None,
            others=[kept.text for kept in self.kept],
        )

    def reject(self, sentence: Sentence, reason: str) -> None:
        self.rejected.append(Rejected(sentence, reason))


def progress(word: str, spec: WritingSpec, replies: Mapping[str, Reply]) -> Progress:
    """What is to be asked next for a seed word, and what is settled, given the replies so far.

    ``replies`` are by request id; those of other words do not matter.
    """
    account = _Account(spec, word, replies)
    requests: list[Request] = []
    for pronoun in PRONOUNS:
        if requests:  # the first request of `he` does not depend on what comes of `she`
            first = spec.generate(word, pronoun, 1, spec.n_sentences)
            requests += [first] if first.request_id not in replies else []
        else:
            requests += _pronoun(account, pronoun)
    return Progress(
        word,
        tuple(requests),
        tuple(account.kept),
        tuple(account.rejected),
        account.n_in,
        account.n_revised,
        account.n_waiting,
    )


def _pronoun(account: _Account, pronoun: Pronoun) -> list[Request]:
    """Settle a pronoun's sentences as far as replies go; the requests that are wanting."""
    spec, word = account.spec, account.word
    n_before = len(account.kept)
    for round in range(1, spec.generate_rounds + 1):
        n_wanted = spec.n_sentences - (len(account.kept) - n_before)
        if not n_wanted:
            break
        request = spec.generate(word, pronoun, round, n_wanted)
        found = account.read(request)
        if found is None:
            return [request]
        drafts = _sort(account, found, n_wanted)
        if requests := _revise(account, drafts):
            return requests
    return []


def _sort(account: _Account, found: list[Sentence], n_wanted: int) -> list[Sentence]:
    """Keep what is good, up to the number wanted; the sentences that are to be revised."""
    drafts: list[Sentence] = []
    n_kept = 0
    for sentence in found:
        verdict = account.verdict(sentence)
        if verdict.fate == "revise":
            drafts.append(sentence)
        elif verdict.fate == "reject":
            account.reject(sentence, verdict.reason)
        elif n_kept == n_wanted:
            account.reject(sentence, "is more than was asked for")
        else:
            account.kept.append(sentence)
            n_kept += 1
    for sentence in drafts[n_wanted - n_kept :]:
        account.reject(sentence, "is more than was asked for")
    return drafts[: n_wanted - n_kept]


def _revise(account: _Account, drafts: list[Sentence]) -> list[Request]:
    """Revise the drafts, all in step; the requests that are wanting.

    A round's replies are judged when all are there: each is compared with those kept before it.
    """
    for round in range(1, account.spec.n_revisions + 1):
        drafts = [draft for draft in drafts if _is_new(account, draft, round)]
        requests = [_revision(account, draft, round) for draft in drafts]
        if missing := [r for r in requests if r.request_id not in account.replies]:
            account.n_waiting += len(drafts)
            return missing
        drafts = [
            left
            for draft, request in zip(drafts, requests, strict=True)
            if (left := _revised(account, draft, request)) is not None
        ]
    for draft in drafts:
        account.reject(draft, f"{account.verdict(draft).reason} after all revisions")
    return []


def _revision(account: _Account, draft: Sentence, round: int) -> Request:
    return account.spec.revise(account.word, draft.pronoun, round, draft.text)


def _is_new(account: _Account, draft: Sentence, round: int) -> bool:
    """Reject a draft that reads like one sent back before: it would get that one's reply again."""
    key = (draft.pronoun, draft.text, round)
    if key in account.drafted:
        account.reject(draft, "repeats another sentence")
        return False
    account.drafted.add(key)
    return True


def _revised(account: _Account, draft: Sentence, request: Request) -> Sentence | None:
    """Settle the reply to a revision; the sentence that needs another round, if one does.

    A reply without a sentence leaves the draft as it was.
    """
    found = account.read(request) or []
    if not found:
        return draft
    account.n_revised += 1
    for surplus in found[1:]:
        account.reject(surplus, "is more than was asked for")
    verdict = account.verdict(found[0])
    if verdict.fate == "revise":
        return found[0]
    if verdict.fate == "keep":
        account.kept.append(found[0])
    else:
        account.reject(found[0], verdict.reason)
    return None
