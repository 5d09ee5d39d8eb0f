"""Ask a model for sentences with a seed word, and keep, revise or reject each sentence.

Sentences that lack the word or the pronoun are sent back for revision, up to ``spec.n_revisions``
times. If there are too few sentences, more are requested. Sentences with `she` are checked first.
Then each sentence with `he` is compared with the sentences with `she`, because two sentences that
differ only in their pronouns would give the same pair twice.

A sentence has to contain the whole word, in upper or lower case. A hyphen may come before or after
the word. An apostrophe may only come after it: `engineer's` contains `engineer`, but `o'clock`
doesn't contain `clock`.
"""

from __future__ import annotations

import asyncio
import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal, get_args

from plumbline.eval_workers.chat.replies import sentences
from plumbline.eval_workers.chat.requests import Pronoun, Reply
from plumbline.eval_workers.chat.session import Ask
from plumbline.eval_workers.pairs.pronouns.pronoun_templates import GENDERS
from plumbline.eval_workers.writing.build_spec import BuildSpec

PRONOUNS: tuple[Pronoun, ...] = get_args(Pronoun)
#: Sentences are near-duplicates if the Jaccard similarity of their words is at least this; all
#: gendered pronouns count as one word.
NEAR = 0.8

_SURPLUS = "is more than was asked for"
_WORD = re.compile(r"[^\W_]+")
_ENDS = re.compile(r"[.!?…][\"'”’»)\]]*$")
_FEWEST_WORDS = 3

Fate = Literal["keep", "revise", "reject"]


@dataclass(frozen=True)
class WrittenSentence:
    """A sentence from a reply. ``position`` is the sentence's place in the reply, from 1."""

    text: str
    word: str
    pronoun: Pronoun
    request_id: str
    position: int


@dataclass
class Written:
    """The sentences that a model wrote for a seed word. Each is kept, rejected or revised.

    ``rejected`` maps each rejected sentence to the reason. ``n_in`` is the number of all sentences
    in the replies. ``n_revised`` is the number of revisions that the model returned.
    """

    word: str
    kept: list[WrittenSentence] = field(default_factory=list)
    rejected: dict[WrittenSentence, str] = field(default_factory=dict)
    n_in: int = 0
    n_revised: int = 0


async def write(word: str, spec: BuildSpec, ask: Ask) -> Written:
    """Ask the model for sentences with a seed word. ``Build.run`` supplies ``ask``."""
    n, writer = spec.n_sentences, _Writer(spec, ask, Written(word))
    # Send both first requests at once. Below, `ask` finds their replies in the ledger.
    await asyncio.gather(*(ask(spec.request("generate", word, p, 1, n=n)) for p in PRONOUNS))
    kept = writer.written.kept
    for pronoun in PRONOUNS:
        n_wanted = len(kept) + n
        for round in range(1, spec.generate_rounds + 1):
            if n_missing := n_wanted - len(kept):
                reply = await ask(spec.request("generate", word, pronoun, round, n=n_missing))
                await writer.settle(writer.read(reply, pronoun), n_wanted)
    return writer.written


@dataclass
class _Writer:
    """Keeps, revises or rejects the sentences of a seed word."""

    spec: BuildSpec
    ask: Ask
    written: Written
    sent_back: set[str] = field(default_factory=set)

    def read(self, reply: Reply, pronoun: Pronoun) -> list[WrittenSentence]:
        """Read the sentences in a reply, and count them."""
        word, texts = self.written.word, sentences(reply.text)
        self.written.n_in += len(texts)
        return [
            WrittenSentence(text, word, pronoun, reply.request_id, position)
            for position, text in enumerate(texts, 1)
        ]

    async def settle(self, read: list[WrittenSentence], n_wanted: int) -> None:
        """Keep good sentences until ``n_wanted`` are kept.

        Sentences that need revision go back to the model, one round at a time. Revised sentences
        are checked in order, because each is compared with the sentences kept so far.
        """
        rejected = self.written.rejected
        drafts = [one for one in read if self._needs_revision(one, n_wanted)]
        n_left = n_wanted - len(self.written.kept)
        rejected |= dict.fromkeys(drafts[n_left:], _SURPLUS)
        drafts = drafts[:n_left]
        for round in range(1, self.spec.n_revisions + 1):
            requests = {}
            for draft in drafts:
                place = draft.word, draft.pronoun, round
                request = self.spec.request("revise", *place, sentence=draft.text)
                if request.request_id in self.sent_back:  # the same draft has been sent before
                    rejected[draft] = "repeats another sentence"
                else:
                    self.sent_back.add(request.request_id)
                    requests[draft] = request
            replies = await asyncio.gather(*map(self.ask, requests.values()))
            revised = map(self._revised, requests, replies)
            drafts = [one for one in revised if self._needs_revision(one, n_wanted)]
        for draft in drafts:
            rejected[draft] = f"{self._checked(draft)[1]} after all revisions"

    def _revised(self, draft: WrittenSentence, reply: Reply) -> WrittenSentence:
        """Return the revised sentence in a reply. If the reply has none, return the draft."""
        first, *others = self.read(reply, draft.pronoun) or [draft]
        self.written.n_revised += first is not draft
        self.written.rejected |= dict.fromkeys(others, _SURPLUS)
        return first

    def _needs_revision(self, sentence: WrittenSentence, n_wanted: int) -> bool:
        """Return True if a sentence needs revision. If not, keep or reject it and return False."""
        fate, reason = self._checked(sentence)
        if fate == "keep" and len(self.written.kept) < n_wanted:
            self.written.kept.append(sentence)
        elif fate != "revise":
            self.written.rejected[sentence] = reason or _SURPLUS
        return fate == "revise"

    def _checked(self, sentence: WrittenSentence) -> tuple[Fate, str]:
        max_words = self.spec.max_words if self.spec.reject_longer else None
        return check(sentence, max_words, [kept.text for kept in self.written.kept])


def check(
    sentence: WrittenSentence, max_words: int | None, others: Sequence[str] = ()
) -> tuple[Fate, str]:
    """Decide whether a sentence is kept, revised or rejected. Return the decision and the reason.

    ``others`` are the kept sentences of the same seed word. First, a text that isn't a sentence is
    rejected. Next, a sentence that lacks the word or the pronoun is marked for revision. Last, a
    sentence is rejected if it has more than ``max_words`` words (``None`` allows any length), has a
    pronoun of the other gender, or repeats one of ``others``.

    >>> check(WrittenSentence("He wound the clock.", "clock", "she", "r", 1), 8)
    ('revise', 'lacks the pronoun')
    """
    text = sentence.text
    if problem := malformed(text):
        return "reject", problem
    if not has_word(text, sentence.word):
        return "revise", "lacks the word"
    genders = {GENDERS[word] for word in _words(text) if word in GENDERS}
    if GENDERS[sentence.pronoun] not in genders:
        return "revise", "lacks the pronoun"
    if max_words is not None and n_words(text) > max_words:
        return "reject", f"has more than {max_words} words"
    if len(genders) > 1:
        return "reject", "holds a pronoun of the other gender"
    problem = repeats(text, others)
    return ("reject", problem) if problem else ("keep", "")


def malformed(sentence: str) -> str:
    """Return why a text can't be a sentence, or an empty string if it can.

    >>> malformed("and then she left"), malformed("She left")
    ('does not start like a sentence', 'does not end like a sentence')
    """
    if not sentence.isprintable() or "\ufffd" in sentence:
        return "holds characters that can't be printed"
    if "{" in sentence or "}" in sentence:
        return "holds a brace"
    if "\\" in sentence:
        return "holds a backslash"
    letters = [c for c in sentence if c.isalnum()]
    if not letters or letters[0].islower() or sentence[0].isdigit() or sentence[0] in ">#|":
        return "does not start like a sentence"
    if not _ENDS.search(sentence):
        return "does not end like a sentence"
    return f"has fewer than {_FEWEST_WORDS} words" if n_words(sentence) < _FEWEST_WORDS else ""


def n_words(sentence: str) -> int:
    """Count the words of a text, splitting it at white space.

    >>> n_words(" A well-known  clock - hers. ")
    5
    """
    return len(sentence.split())


def has_word(sentence: str, word: str) -> bool:
    """Return True if the sentence has the whole word, ignoring case.

    >>> has_word("The Nurse's bag.", "nurse"), has_word("She was nursed.", "nurse")
    (True, False)
    """
    form = re.escape(_normal(word))
    return re.search(rf"(?<!\w)(?<!\w['’]){form}(?!\w)", _normal(sentence)) is not None


def repeats(sentence: str, others: Sequence[str]) -> str:
    """Return a problem if a sentence repeats one of ``others``, otherwise ``""``. Ignore pronouns.

    >>> repeats("He wound the clock!", ["She wound the clock."])
    'repeats another sentence'
    >>> repeats("She wound the old oak clock.", ["She wound the old oak wall clock."])
    'nearly repeats another sentence'
    >>> repeats("She wound the clock.", ["She sold the clock."])
    ''
    """
    key, keys = _key(sentence), [_key(other) for other in others]
    if key in keys:
        return "repeats another sentence"
    words = set(key)
    for other in map(set, keys):
        if len(words & other) >= NEAR * len(words | other):
            return "nearly repeats another sentence"
    return ""


def _key(sentence: str) -> list[str]:
    return ["<pronoun>" if word in GENDERS else word for word in _words(sentence)]


def _words(sentence: str) -> list[str]:
    """Return the words in lower case. An apostrophe ends a word: `she'd` is `she` and `d`."""
    return _WORD.findall(_normal(sentence))


def _normal(text: str) -> str:
    return unicodedata.normalize("NFKC", text).casefold()
