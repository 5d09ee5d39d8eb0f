"""Sentences for a seed word: the next requests, and the fate of every sentence.

Sentences without the word or the pronoun are sent back, with the wordings in turn; missing
sentences are requested again. All sentences of `she` are settled first; then the sentences of `he`
are compared with them, since two that differ only in their pronouns would be the same pair twice.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import get_args

from plumbline.eval_workers.chat.replies import sentences
from plumbline.eval_workers.chat.requests import ChatModel, Pronoun, Purpose, Reply, Request
from plumbline.eval_workers.writing.sentence_checks import SentenceCheck, check
from plumbline.eval_workers.writing.wordings import Wordings, fill_prompt

PRONOUNS: tuple[Pronoun, ...] = get_args(Pronoun)

#: Most uses of each wording to revise a sentence: UnStereoEval's released pipeline drops a sentence
#: after 40 tries, with four wordings in turn (`src/run_pipeline_revision.py`).
TRIES_A_WORDING = 10

#: Most tokens of a reply: per word, per sentence besides its words, and for other text.
_TOKENS_A_WORD, _TOKENS_A_SENTENCE, _TOKENS_OF_TALK = 4, 16, 64
_SURPLUS = "is more than was asked for"


@dataclass(frozen=True)
class WritingSpec:
    """Settings of the writing.

    Attributes:
        n_sentences: number of sentences for each seed word and pronoun.
        max_words: most words of a sentence, by white space, as the request states it.
        reject_longer: True to reject longer sentences; UnStereoEval kept them.
        revise_rounds: most times a sentence is sent back; ``None`` for ten with each wording.
        judge: model that judges pairs; ``None`` for the model that writes.
        generate_rounds: most requests for sentences, for each word and pronoun.
    """

    model: ChatModel
    prompts: Wordings
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

        >>> from plumbline.eval_workers.writing.wordings import load
        >>> WritingSpec(ChatModel("m"), load()).n_revisions  # ten with each of four wordings
        40
        """
        if self.revise_rounds is not None:
            return self.revise_rounds
        return TRIES_A_WORDING * len(self.prompts.revise)

    def generate(self, word: str, pronoun: Pronoun, round: int, n: int) -> Request:
        """The request for ``n`` sentences."""
        values = {"word": word, "pronoun": pronoun, "n": n, "max_words": self.max_words}
        prompt = fill_prompt(self.prompts.generating(pronoun), **values)
        return self._request("generate", prompt, word, pronoun, round, n)

    def revise(self, word: str, pronoun: Pronoun, round: int, sentence: str) -> Request:
        """The request for a corrected sentence, with this round's wording."""
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
class WrittenSentence:
    """A sentence of a reply; ``position`` is its place in the reply, from 1."""

    text: str
    word: str
    pronoun: Pronoun
    request_id: str
    position: int


@dataclass(frozen=True)
class Rejected:
    """A sentence that is not used, and the reason."""

    sentence: WrittenSentence
    reason: str


@dataclass(frozen=True)
class Progress:
    """State of a seed word: it is done when there are no ``requests``.

    ``n_in`` sentences were read; each is kept, rejected, revised (another sentence replaced it), or
    waiting for its revision.
    """

    word: str
    requests: tuple[Request, ...]
    kept: tuple[WrittenSentence, ...]
    rejected: tuple[Rejected, ...]
    n_in: int
    n_revised: int
    n_waiting: int

    def balances(self) -> bool:
        """True if every sentence that was read is counted once."""
        fates = len(self.kept) + len(self.rejected) + self.n_revised + self.n_waiting
        return self.n_in == fates


def progress(word: str, spec: WritingSpec, replies: Mapping[str, Reply]) -> Progress:
    """Next requests for a seed word, and the fates of its sentences, from the replies so far. Pure.

    ``replies`` are by request id, in any order; replies about other words do not matter.
    """
    account = _Account(spec, word, replies)
    requests: list[Request] = []
    for pronoun in PRONOUNS:
        if requests:  # the first request of `he` does not depend on sentences of `she`
            first = spec.generate(word, pronoun, 1, spec.n_sentences)
            requests += [first] if first.request_id not in replies else []
        else:
            requests += account.settle(pronoun)
    kept, rejected = tuple(account.kept), tuple(account.rejected)
    counts = account.n_in, account.n_revised, account.n_waiting
    return Progress(word, tuple(requests), kept, rejected, *counts)


@dataclass
class _Account:
    """Fates of a seed word's sentences, filled by ``settle``."""

    spec: WritingSpec
    word: str
    replies: Mapping[str, Reply]
    kept: list[WrittenSentence] = field(default_factory=list)
    rejected: list[Rejected] = field(default_factory=list)
    sent_back: set[str] = field(default_factory=set)
    n_in: int = 0
    n_revised: int = 0
    n_waiting: int = 0

    def settle(self, pronoun: Pronoun) -> list[Request]:
        """Settle a pronoun's sentences as far as there are replies; returns the next requests."""
        spec, n_before = self.spec, len(self.kept)
        for round in range(1, spec.generate_rounds + 1):
            n_missing = spec.n_sentences - (len(self.kept) - n_before)
            if not n_missing:
                break
            request = spec.generate(self.word, pronoun, round, n_missing)
            if request.request_id not in self.replies:
                return [request]
            drafts = self._sort(self._read(request, pronoun), n_missing)
            if requests := self._revise(drafts):
                return requests
        return []

    def _read(self, request: Request, pronoun: Pronoun) -> list[WrittenSentence]:
        """Sentences of a request's reply."""
        texts = sentences(self.replies[request.request_id].text)
        self.n_in += len(texts)
        return [
            WrittenSentence(text, self.word, pronoun, request.request_id, position)
            for position, text in enumerate(texts, 1)
        ]

    def _sort(self, written: list[WrittenSentence], n_missing: int) -> list[WrittenSentence]:
        """Keep good sentences, up to the number missing; returns the sentences to revise."""
        drafts: list[WrittenSentence] = []
        n_kept = 0
        for sentence in written:
            verdict = self._verdict(sentence)
            if verdict.fate == "revise":
                drafts.append(sentence)
            elif verdict.fate == "reject":
                self._reject(sentence, verdict.reason)
            elif n_kept == n_missing:
                self._reject(sentence, _SURPLUS)
            else:
                self.kept.append(sentence)
                n_kept += 1
        for sentence in drafts[n_missing - n_kept :]:
            self._reject(sentence, _SURPLUS)
        return drafts[: n_missing - n_kept]

    def _revise(self, drafts: list[WrittenSentence]) -> list[Request]:
        """Revise all drafts, round by round; returns the next requests.

        A round's replies are checked once all have arrived, since each is compared with the
        sentences kept before it.
        """
        for round in range(1, self.spec.n_revisions + 1):
            revisions: list[tuple[WrittenSentence, Request]] = []
            for draft in drafts:
                request = self.spec.revise(self.word, draft.pronoun, round, draft.text)
                if request.request_id in self.sent_back:  # a draft with the same text was sent
                    self._reject(draft, "repeats another sentence")
                else:
                    self.sent_back.add(request.request_id)
                    revisions.append((draft, request))
            missing = [r for _, r in revisions if r.request_id not in self.replies]
            if missing:
                self.n_waiting += len(revisions)
                return missing
            revised = [self._revised(draft, request) for draft, request in revisions]
            drafts = [draft for draft in revised if draft is not None]
        for draft in drafts:
            self._reject(draft, f"{self._verdict(draft).reason} after all revisions")
        return []

    def _revised(self, draft: WrittenSentence, request: Request) -> WrittenSentence | None:
        """Settle the reply to a revision; returns the sentence that needs another round, if any.

        If the reply has no sentence, the draft is returned.
        """
        written = self._read(request, draft.pronoun)
        if not written:
            return draft
        self.n_revised += 1
        for surplus in written[1:]:
            self._reject(surplus, _SURPLUS)
        verdict = self._verdict(written[0])
        if verdict.fate == "revise":
            return written[0]
        if verdict.fate == "keep":
            self.kept.append(written[0])
        else:
            self._reject(written[0], verdict.reason)
        return None

    def _verdict(self, sentence: WrittenSentence) -> SentenceCheck:
        return check(
            sentence.text,
            word=self.word,
            pronoun=sentence.pronoun,
            max_words=self.spec.max_words if self.spec.reject_longer else None,
            others=[kept.text for kept in self.kept],
        )

    def _reject(self, sentence: WrittenSentence, reason: str) -> None:
        self.rejected.append(Rejected(sentence, reason))
