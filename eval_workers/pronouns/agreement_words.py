"""Words behind a "her" that need a rule of their own: back, past, home, one, all, better, ...

Each rule sees the context and says his, him, unsure, or nothing, which leaves it to the others.
"""

from __future__ import annotations

from collections.abc import Callable

from plumbline.eval_workers.pronouns.agreement_context import (
    Context,
    Verdict,
    ends_phrase,
    is_adjective,
    is_adverb,
    is_comparative,
    words,
)


def _his(context: Context) -> Verdict:
    return "his"


def _moved(context: Context) -> Verdict:
    """called her back, took her home; turned her back on, her home country."""
    if context.back(0) not in words("verbs", "moving"):
        return "his"
    after = context.on(1)
    return "him" if ends_phrase(after) or is_adverb(after) or after == "every" else "his"


def _past(context: Context) -> Verdict:
    """led her past the gate; her past, her past work."""
    return "him" if context.on(1) in words("closed", "determiners") else "his"


def _left(context: Context) -> Verdict:
    """those behind her left the room; her left hand."""
    return "him" if context.on(1) in words("closed", "determiners") else "his"


def _right(context: Context) -> Verdict:
    """treated her right, proved her right; her right to vote, her right hand."""
    treated = context.back(0) in words("verbs", "treating") | words("verbs", "complement")
    if treated and ends_phrase(context.on(1)):
        return "him"
    return "him" if context.on(1) in {"now", "away", "here", "there", "beside", "at"} else "his"


def _well(context: Context) -> Verdict:
    """served her well; her well researched paper."""
    if context.back(0) in words("verbs", "treating") or ends_phrase(context.on(1)):
        return "him"
    return "his" if is_adjective(context.on(1)) else "unsure"


def _better(context: Context) -> Verdict:
    """knows her better, helps her better understand; her better half."""
    verb = context.on(1) in words("verbs", "bare") - words("verbs", "homographs")
    return "him" if ends_phrase(context.on(1)) or verb else "his"


def _best(context: Context) -> Verdict:
    """suits her best; did her best, her best work."""
    liked = context.back(0) in words("verbs", "treating") - {"do", "does", "did"}
    return "him" if liked and ends_phrase(context.on(1)) else "his"


def _more(context: Context) -> Verdict:
    """made her more aware, gave her more time, loved her more than; her more recent work."""
    made = words("verbs", "complement") | words("verbs", "giving")
    if context.back(0) in made or ends_phrase(context.on(1)) or context.on(1) == "often":
        return "him"
    return "his"


def _most(context: Context) -> Verdict:
    """helped her most; her most recent work."""
    return "him" if ends_phrase(context.on(1)) else "his"


def _much(context: Context) -> Verdict:
    """caused her much pain, helped her much; her much loved cat."""
    return "his" if context.on(1).endswith("ed") and not ends_phrase(context.on(2)) else "him"


def _all(context: Context) -> Verdict:
    """gave her all to the task; told her all about it."""
    gave = context.back(0) in {"give", "gives", "gave", "giving", "given"}
    ends = context.on(1) in {"", ".", ",", "!", "to", "in", "into", "for", "and", "at", "during"}
    return "his" if gave and ends else "him"


def _one(context: Context) -> Verdict:
    """saw her one day, made her one of, charged her one dollar; her one true love."""
    if context.back(0) in words("verbs", "charging"):
        return "him"
    if context.on(1) in words("nouns", "times"):
        return "him"
    return "unsure" if ends_phrase(context.on(1)) else "his"


def _every(context: Context) -> Verdict:
    """visits her every day; her every move."""
    return "him" if context.on(1) in words("nouns", "times") else "his"


def _first(context: Context) -> Verdict:
    """put her first; her first job."""
    put = {"put", "puts", "putting", "place", "places", "placed", "placing", "met", "saw", "see"}
    return "him" if context.back(0) in put and ends_phrase(context.on(1)) else "his"


def _will(context: Context) -> Verdict:
    """those around her will follow; her will to live, against her will."""
    if context.back(0) in {"around", "near", "beside", "behind", "before", "like"}:
        return "him"
    free = ends_phrase(context.on(1)) and context.on(1) not in {"be", "have", "not", "never"}
    return "his" if free else "unsure"


def _might(context: Context) -> Verdict:
    """with all her might; what stood before her might fall."""
    return "his" if ends_phrase(context.on(1)) and context.on(1) != "be" else "unsure"


def _very(context: Context) -> Verdict:
    """love her very much, know her very well; her very own, her very first."""
    made = context.back(0) in words("verbs", "complement") and not context.noun_ahead()
    ends = ends_phrase(context.on(context.past_adverbs()))
    return "him" if made or ends or context.on(1) == "much" else "his"


def _even(context: Context) -> Verdict:
    """made her even stronger, loved her even then; her even greater fame."""
    greater = is_comparative(context.on(1)) or context.on(1) in {"more", "less"}
    return "his" if greater and context.noun_ahead() else "him"


def _then(context: Context) -> Verdict:
    """told her then; her then boyfriend, her then unknown work."""
    close = {"husband", "boyfriend", "fiance", "fiancé", "partner", "boss", "employer", "manager"}
    if context.on(1) in close:
        return "his"
    return "unsure" if is_adjective(context.on(1)) else "him"


def _so(context: Context) -> Verdict:
    """loved her so; her so called friends."""
    return "his" if context.on(1) == "called" else "him"


def _only(context: Context) -> Verdict:
    """told her only that; her only child."""
    return "him" if ends_phrase(context.on(1)) and context.on(1) else "his"


def _alone(context: Context) -> Verdict:
    """leave her alone; her alone time."""
    return "his" if context.on(1) == "time" else "him"


def _inside(context: Context) -> Verdict:
    """locked her inside; her inside knowledge."""
    return "him" if ends_phrase(context.on(1)) or is_adverb(context.on(1)) else "his"


def _half(context: Context) -> Verdict:
    """gave her half the cake; her half of it, her half sister."""
    return "him" if context.on(1) in words("closed", "determiners") else "his"


def _near(context: Context) -> Verdict:
    """keep her near, found her near the lake; her near miss."""
    close = {"miss", "misses", "future", "relatives", "neighbors", "neighbours", "death", "sight"}
    return "his" if context.on(1) in close else "him"


def _good(context: Context) -> Verdict:
    """it did her good; her good name."""
    did = context.back(0) in {"do", "does", "did", "doing", "done"}
    return "him" if did and ends_phrase(context.on(1)) else None


def _not(context: Context) -> Verdict:
    """told her not to; "pleased at her not taking it": a gerund takes either."""
    return "unsure" if context.on(1).endswith("ing") else "him"


def _manner(context: Context) -> Verdict:
    """hit her hard, liked her long ago; her hard work, her long, dark hair."""
    listed = {",", "and", "or", "but", "yet"}
    if not ends_phrase(context.on(1)) or context.on(1) in listed:
        return None
    return "him"


def _close(context: Context) -> Verdict:
    """held her close, whispering; her close friend."""
    return "him" if ends_phrase(context.on(1)) else None


def _gerund(context: Context) -> Verdict:
    """By her being late: a gerund takes either."""
    return "unsure"


def _while(context: Context) -> Verdict:
    """saw her while; worth her while."""
    return "his" if context.back(0) in {"worth", "worthy"} else "him"


WORDS: dict[str, Callable[[Context], Verdict]] = {
    "own": _his,
    "back": _moved,
    "home": _moved,
    "past": _past,
    "left": _left,
    "right": _right,
    "well": _well,
    "better": _better,
    "best": _best,
    "more": _more,
    "less": _more,
    "most": _most,
    "least": _most,
    "much": _much,
    "all": _all,
    "one": _one,
    "every": _every,
    "first": _first,
    "will": _will,
    "might": _might,
    "very": _very,
    "even": _even,
    "then": _then,
    "so": _so,
    "only": _only,
    "alone": _alone,
    "inside": _inside,
    "outside": _inside,
    "half": _half,
    "near": _near,
    "good": _good,
    "being": _gerund,
    "having": _gerund,
    "while": _while,
    "not": _not,
    "close": _close,
    "tight": _close,
    **dict.fromkeys(words("ambiguous", "manner"), _manner),
}
