"""The filter of perturbations: how much a text may differ from its original (section 3.3)."""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

#: What the filter counts: different words, or different characters.
Unit = Literal["words", "characters"]


@dataclass(frozen=True)
class TextFilter:
    """How much a perturbation may differ from its original: ``limit`` of their different units.

    Words are those of ``jaccard.tokens``. Characters are case-sensitive and without blanks: of the
    definitions we tried, only this one gives a figure that the paper prints (Table 2: 96.9).
    """

    limit: float = 0.15
    unit: Unit = "words"

    def named(self, perturber: str) -> str:
        """Column ``perturber``: a filter that isn't the default is named behind the perturber.

        >>> TextFilter().named("rules"), TextFilter(0.3).named("rules")
        ('rules', 'rules-words-0.3')
        """
        return perturber if self == DEFAULT else f"{perturber}-{self.unit}-{self.limit!r}"

    def units(self, text: str) -> frozenset[str]:
        """The different words or characters of a text.

        >>> sorted(TextFilter(unit="characters").units("Is it"))
        ['I', 'i', 's', 't']
        """
        from plumbline.eval_workers.fairpair.phi.jaccard import tokens  # it loads scipy

        if self.unit == "words":
            return tokens(text)
        return frozenset("".join(unicodedata.normalize("NFC", text).split()))

    def dissimilarity(self, first: str, second: str) -> float:
        """Jaccard dissimilarity of two texts' sets of units, 0 to 1; 0 without units."""
        a, b = self.units(first), self.units(second)
        n_union = len(a | b)
        return (n_union - len(a & b)) / n_union if n_union else 0.0

    def n_missing(self, prompt: Mapping[str, Any], text: str = "") -> int:
        """How many more different words (or characters) a text needs to be valid.

        So many that changing only the name, and for gender one pronoun, stays within the limit.

        >>> row = {"prompt": "John is", "perturbed_prompt": "Jane is", "axis": "gender"}
        >>> TextFilter().n_missing(row), TextFilter().n_missing(row, "John is so tired that he sat")
        (22, 18)
        """
        pronouns = (" He", " She") if prompt["axis"] == "gender" else ("", "")
        texts = prompt["prompt"], prompt["perturbed_prompt"]
        a, b = (self.units(one + more) for one, more in zip(texts, pronouns, strict=True))
        n_needed = math.ceil(len(a ^ b) / self.limit - 1e-9)
        return max(n_needed - len(a | b | self.units(text)), 0)


#: The filter of section 3.3, with words for its tokens.
DEFAULT = TextFilter()
