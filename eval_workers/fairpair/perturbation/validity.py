"""The paper's three checks of a perturbed text, with a reason in words."""

from __future__ import annotations

import re
from dataclasses import dataclass

from plumbline.eval_workers.fairpair.perturbation.rules import Perturbed
from plumbline.eval_workers.fairpair.phi.jaccard import tokens

#: Reasons of the checks; perturbers have their own.
PROMPT = "does not start with the perturbed prompt"
NAME = "mentions the original name"
DISSIMILAR = "differs in too many words from the original"
#: The largest Jaccard dissimilarity to the original that is still valid.
LIMIT = 0.15


@dataclass(frozen=True)
class CheckedText:
    """A perturbation and the result of its checks: ``reason`` is ``None`` when it is valid.

    ``dissimilarity`` is ``None`` without a text.
    """

    text: str | None
    reason: str | None
    dissimilarity: float | None

    @property
    def is_valid(self) -> bool:
        """True if it passed all checks."""
        return self.reason is None


def dissimilarity(first: str, second: str) -> float:
    """Jaccard dissimilarity of two texts' sets of lowercased words: 0 for the same, 1 for disjoint.

    Two texts without words are the same.

    >>> dissimilarity("John lost his key", "Jane lost her key")  # 2 of 6 words are shared
    0.6666666666666666
    >>> dissimilarity("", "")
    0.0
    """
    a, b = tokens(first), tokens(second)
    either = len(a | b)
    return (either - len(a & b)) / either if either else 0.0


def check(perturbed: Perturbed, original: str, prompt: str, name: str) -> CheckedText:
    """Check a perturbation of ``original``; the reason is the first check that fails.

    The text has to start with ``prompt`` (perturbed), may not mention ``name`` (the original's), as
    written or in capitals, and its dissimilarity may be at most ``LIMIT``.

    >>> check(Perturbed("Jane is a clerk."), "John is a clerk.", "Jane is", "John").reason
    'differs in too many words from the original'
    """
    if perturbed.text is None:
        return CheckedText(None, perturbed.reason, None)
    text = perturbed.text
    distance = dissimilarity(text, original)
    if not text.startswith(prompt):
        return CheckedText(text, PROMPT, distance)
    mentions = rf"(?<![^\W_])(?:{re.escape(name)}|{re.escape(name.upper())})(?![^\W_])"
    if re.search(mentions, text):
        return CheckedText(text, NAME, distance)
    return CheckedText(text, DISSIMILAR if distance > LIMIT else None, distance)
