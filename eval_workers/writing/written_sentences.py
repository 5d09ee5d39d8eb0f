"""Writes sentences around a seed word: what is asked for, and the fate of every sentence.

Sentences without the word or the pronoun are sent back, with the wordings in turn; missing
sentences are requested again. All sentences of `she` are settled first; then the sentences of `he`
are compared with them, since two that differ only in their pronouns would be the same pair twice.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import get_args

from plumbline.eval_workers.chat.chat_session import Ask
from plumbline.eval_workers.chat.replies import sentences
from plumbline.eval_workers.chat.requests import Pronoun, Reply
from plumbline.eval_workers.writing.build_spec import BuildSpec
from plumbline.eval_workers.writing.sentence_checks import SentenceCheck, check

PRONOUNS: tuple[Pronoun, ...] = get_args(Pronoun)
_SURPLUS = "is more than was asked for"


@dataclass(frozen=True)
class WrittenSentence:
    """A sentence of a reply; ``position`` is its place in the reply, from 1."""

    text: str
    word: str
    pronoun: Pronoun
    request_id: str
    position: int


@dataclass
class Written:
    """The sentences of a seed word: ``n_in`` were read; each is kept, rejected or revised.

    ``rejected`` has the reason why a sentence isn't used. Another sentence replaced each of the
    ``n_revised``.
    """

    word: str
    kept: list[WrittenSentence] = field(default_factory=list)
    rejected: dict[WrittenSentence, str] = field(default_factory=dict)
    n_in: int = 0
    n_revised: int = 0

    def balances(self) -> bool:
        """True if every sentence that was read is counted once."""
        return self.n_in == len(self.kept) + len(self.rejected) + self.n_revised


async def write(word: str, spec: BuildSpec, ask: Ask) -> Written:
    """Ask for the sentences of a seed word, in rounds; a plan of ``Build.run``."""
    # Both first requests at once: that of `he` does not depend on the sentences of `she`.
    await asyncio.gather(
        *(ask(spec.request("generate", word, p, 1, n=spec.n_sentences)) for p in PRONOUNS)
    )
    writer = _Writer(spec, ask, Written(word))
    for pronoun in PRONOUNS:
        await writer.settle(pronoun)
    return writer.written


@dataclass
class _Writer:
    """Settles the fates of a seed word's sentences."""

    spec: BuildSpec
    ask: Ask
    written: Written
    sent_back: set[str] = field(default_factory=set)

    async def settle(self, pronoun: Pronoun) -> None:
        """Ask for sentences with a pronoun until all are there or the rounds are used up."""
        spec, word, kept = self.spec, self.written.word, self.written.kept
        n_wanted = len(kept) + spec.n_sentences
        for round in range(1, spec.generate_rounds + 1):
            if n_missing := n_wanted - len(kept):
                reply = await self.ask(spec.request("generate", word, pronoun, round, n=n_missing))
                drafts = self._sort(self._read(reply, pronoun), n_missing)
                await self._revise(drafts)

    def _read(self, reply: Reply, pronoun: Pronoun) -> list[WrittenSentence]:
        texts = sentences(reply.text)
        self.written.n_in += len(texts)
        return [
            WrittenSentence(text, self.written.word, pronoun, reply.request_id, position)
            for position, text in enumerate(texts, 1)
        ]

    def _sort(self, written: list[WrittenSentence], n_missing: int) -> list[WrittenSentence]:
        """Keep good sentences, up to the number missing; returns the sentences to revise."""
        kept, rejected = self.written.kept, self.written.rejected
        drafts, n_most = list[WrittenSentence](), len(kept) + n_missing
        for sentence in written:
            found = self._check(sentence)
            if found.fate == "keep" and len(kept) == n_most:
                found = SentenceCheck("reject", _SURPLUS)
            if self._settle(sentence, found):
                drafts.append(sentence)
        n_left = n_most - len(kept)
        rejected |= dict.fromkeys(drafts[n_left:], _SURPLUS)
        return drafts[:n_left]

    def _settle(self, sentence: WrittenSentence, found: SentenceCheck) -> bool:
        """Keep or reject a sentence as it was found to be; True if it is to be revised instead."""
        if found.fate == "keep":
            self.written.kept.append(sentence)
        elif found.fate == "reject":
            self.written.rejected[sentence] = found.reason
        return found.fate == "revise"

    async def _revise(self, drafts: list[WrittenSentence]) -> None:
        """Send drafts back, round by round.

        A round's replies are checked once all have arrived, since each is compared with the
        sentences kept before it.
        """
        for round in range(1, self.spec.n_revisions + 1):
            requests = {}
            for draft in drafts:
                place = draft.word, draft.pronoun, round
                request = self.spec.request("revise", *place, sentence=draft.text)
                if request.request_id in self.sent_back:  # a draft with the same text was sent
                    self.written.rejected[draft] = "repeats another sentence"
                else:
                    self.sent_back.add(request.request_id)
                    requests[draft] = request
            replies = await asyncio.gather(*map(self.ask, requests.values()))
            revised = list(map(self._revised, requests, replies))
            drafts = [draft for draft in revised if draft is not None]
        for draft in drafts:
            self.written.rejected[draft] = f"{self._check(draft).reason} after all revisions"

    def _revised(self, draft: WrittenSentence, reply: Reply) -> WrittenSentence | None:
        """Settle the reply to a revision; returns the sentence that needs another round, if any.

        If the reply has no sentence, the draft is returned.
        """
        revised = self._read(reply, draft.pronoun)
        if not revised:
            return draft
        self.written.n_revised += 1
        self.written.rejected |= dict.fromkeys(revised[1:], _SURPLUS)
        return revised[0] if self._settle(revised[0], self._check(revised[0])) else None

    def _check(self, sentence: WrittenSentence) -> SentenceCheck:
        return check(
            sentence.text,
            word=self.written.word,
            pronoun=sentence.pronoun,
            max_words=self.spec.max_words if self.spec.reject_longer else None,
            others=[kept.text for kept in self.written.kept],
        )
