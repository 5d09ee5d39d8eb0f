"""Whether a "her" is his or him, told by the words that stand round it.

Closed word classes and a few verb frames decide; the words are listed in ``agreement.toml``. Where
both readings make a sentence ("she saw her smile") the answer is ``None``. Pure; no word is looked
up anywhere else, and no language data is needed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal

from plumbline.eval_workers.pronouns.agreement_context import (
    OPENING,
    Context,
    Verdict,
    ends_phrase,
    is_adjective,
    is_adverb,
    is_number,
    is_word,
    words,
)
from plumbline.eval_workers.pronouns.agreement_words import WORDS

Masculine = Literal["his", "him"]


def stands_alone(after: Sequence[str]) -> bool:
    """Whether a "his" with these tokens behind it owns nothing that is named: "a friend of his".

    Every place where this holds is one where ``decide_her`` says him.

    >>> stands_alone(["is", "better"]), stands_alone(["key"]), stands_alone([])
    (True, False, True)
    """
    token = after[0].lower() if after else ""
    if token in OPENING:
        return False
    if token in WORDS:
        return False
    kinds = ("prepositions", "conjunctions", "auxiliaries")
    return not is_word(token) or any(token in words("closed", kind) for kind in kinds)


def decide_her(before: Sequence[str], after: Sequence[str]) -> Masculine | None:
    """What a "her" between these tokens is in the masculine, or ``None`` where both may be meant.

    The tokens are those of ``TOKEN``, in the sentence's order, as written.

    >>> decide_her(["She", "lost"], ["key", "."])
    'his'
    >>> decide_her(["They", "gave"], ["a", "key", "."])
    'him'
    >>> decide_her(["I", "saw"], ["smile", "."]) is None
    True
    """
    context = Context(
        tuple(token.lower() for token in before), tuple(token.lower() for token in after)
    )
    for rule in _RULES:
        verdict = rule(context)
        if verdict is not None:
            return None if verdict == "unsure" else verdict
    return "his"


def _marks(context: Context) -> Verdict:
    mark = context.on(0)
    if is_word(mark):
        return None
    if mark in OPENING and is_word(context.on(1)):
        return "unsure"  # her "friend", told her "stop"; a closing quote looks the same
    return "him"


def _closed_class(context: Context) -> Verdict:
    return "him" if ends_phrase(context.on(0)) else None


def _single_words(context: Context) -> Verdict:
    rule = WORDS.get(context.on(0))
    return rule(context) if rule else None


def _made(context: Context) -> Verdict:
    """let her go, help her find, made her smile, saw her leave."""
    verb, word, after = context.back(0), context.on(0), context.on(1)
    either = words("verbs", "homographs")
    bare = word in words("verbs", "bare") - either
    if verb in words("verbs", "making"):
        if word in words("verbs", "seeming") or bare:
            return "him"
        if word not in words("verbs", "made"):
            return None
        return "him" if ends_phrase(after) or is_adjective(after) else "unsure"
    if verb in words("verbs", "causative"):
        if word not in either:
            return "him" if bare else None
        object_or_manner = after in words("closed", "determiners") or is_adjective(after)
        return "him" if object_or_manner or is_adverb(after) else "unsure"
    if verb in words("verbs", "perception"):
        if word in either or word in words("verbs", "made"):
            return "unsure"
        return "him" if bare else None
    return None


def _beside(context: Context) -> Verdict:
    """the world around her faded, everyone near her feels; not: around her beloved city."""
    if context.back(0) not in words("verbs", "places"):
        return None
    word = context.on(0)
    if word in words("verbs", "bare") - words("verbs", "homographs"):
        return "him"
    if word in words("verbs", "stood"):
        return "him"
    if not (word.endswith("ed") and is_adjective(word) and ends_phrase(context.on(1))):
        return None
    return "him" if is_word(context.on(1)) else "unsure"


def _left_doing(context: Context) -> Verdict:
    """left her feeling unsettled, kept her going; in her becoming the head."""
    word, after = context.on(0), context.on(1)
    if not word.endswith("ing") or len(word) < 5:
        return None
    leaving = context.back(0) in words("verbs", "leaving") | words("verbs", "perception")
    if leaving and word in {"feeling", "wanting", "wondering", "going", "reeling", "gasping"}:
        return "him"
    if leaving and (ends_phrase(after) or is_adverb(after)):
        return "unsure" if after in {"", ".", ",", "of", "in", "and", "is", "was"} else "him"
    if after in words("closed", "determiners") | words("closed", "pronouns"):
        return "unsure"  # "by her becoming the head": a gerund takes either
    return None


def _left_so(context: Context) -> Verdict:
    """left her speechless, found her strange, kept her engaged, made her stronger than."""
    verb = context.back(0)
    if verb not in words("verbs", "complement"):
        return None
    first = context.on(context.past_adverbs())
    if not is_adjective(first):
        return None
    return "his" if context.noun_ahead() else "him"


def _given(context: Context) -> Verdict:
    """brought her joy, earned her wide recognition; not: she gave her time."""
    verb = context.back(0)
    if verb in words("verbs", "charging") and is_number(context.on(0)):
        return "him"
    if verb not in words("verbs", "giving"):
        return None
    gave = words("verbs", "bringing")
    hers_to_give = {"she"} if verb in gave else {"she", "and", "to"}
    # "she smiled, offering her help": the one who smiled gives
    giver = "she" if verb in words("verbs", "handing") and verb.endswith("ing") else context.giver()
    if context.gift_ahead():
        return "unsure" if giver in hers_to_give else "him"
    if verb in words("verbs", "handing") and giver not in {"she", "to"}:
        return "unsure"  # another's gift, or hers: "and gave her flowers"
    return None


def _adverbs(context: Context) -> Verdict:
    """admired her deeply, her deeply held beliefs."""
    if context.on(0) in words("adjectives", "ly"):
        alone = context.on(0).endswith(("daily", "weekly", "early", "only", "monthly", "yearly"))
        return "unsure" if alone and ends_phrase(context.on(1)) else None
    if is_number(context.on(0)) and context.on(1) == "times":
        return "him"
    if not is_adverb(context.on(0)):
        return None
    return "him" if ends_phrase(context.on(context.past_adverbs())) else None


_RULES: tuple[Callable[[Context], Verdict], ...] = (
    _marks,
    _single_words,
    _closed_class,
    _made,
    _beside,
    _left_doing,
    _left_so,
    _given,
    _adverbs,
)
