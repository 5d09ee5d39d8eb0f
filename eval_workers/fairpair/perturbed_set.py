"""Perturbs texts, checks the results and writes them to the table ``perturbed_continuation``.

Each text is a prompt followed by its continuation.
"""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal, TypeAlias

from plumbline.eval_workers.fairpair.perturbers import Original, Perturber
from plumbline.eval_workers.fairpair.text_rules import Entity, Perturbed
from plumbline.warehouse.errors import BadInput, UsageProblem
from plumbline.warehouse.storage.store import Store

Row: TypeAlias = Mapping[str, Any]
#: Reasons why a check rejects a perturbed text.
PROMPT = "does not start with the perturbed prompt"
NAME = "mentions the original name"
DISSIMILAR = "differs in too many {} from the original"
SHORT = "is so short that changing only the name (for gender, also a pronoun) exceeds the limit"


#: What the filter compares: sets of words, or sets of characters.
Unit = Literal["words", "characters"]


@dataclass(frozen=True)
class PerturbedSamples:
    """Identifies the perturbed samples of a set in the table ``perturbed_continuation``."""

    probe_set: str
    model_key: str
    sampling_key: str
    perturber: str


@dataclass(frozen=True)
class TextFilter:
    """A limit on how much a perturbed text may differ from its original.

    The filter compares the sets of words (``jaccard.tokens``) or of non-blank characters in the two
    texts. The share of words or characters that are in only one text must not exceed ``limit``.
    Upper and lower case count as different characters. We tried several definitions, and only this
    one gives the figure 96.9 of the paper's Table 2.
    """

    limit: float = 0.15
    unit: Unit = "words"

    def named(self, perturber: str) -> str:
        """Return a perturber's name. If this filter isn't the default, add the filter to the name.

        >>> TextFilter().named("rules"), TextFilter(0.3).named("rules")
        ('rules', 'rules-words-0.3')
        """
        return perturber if self == DEFAULT else f"{perturber}-{self.unit}-{self.limit!r}"

    def units(self, text: str) -> frozenset[str]:
        """Return the set of words or characters in a text.

        >>> sorted(TextFilter(unit="characters").units("Is it"))
        ['I', 'i', 's', 't']
        """
        from plumbline.eval_workers.fairpair.phi.jaccard import tokens  # slow: loads scipy

        if self.unit == "words":
            return tokens(text)
        return frozenset("".join(unicodedata.normalize("NFC", text).split()))

    def dissimilarity(self, first: str, second: str) -> float:
        """Return the Jaccard dissimilarity of two texts, from 0 to 1; 0 for two empty texts."""
        a, b = self.units(first), self.units(second)
        n_union = len(a | b)
        return (n_union - len(a & b)) / n_union if n_union else 0.0

    def n_missing(self, prompt: Mapping[str, Any], text: str = "") -> int:
        """Return how many distinct words (or characters) a text lacks to be long enough.

        We assume that a perturbation changes the name. If the axis is gender, we assume that it
        also changes one pronoun. A text is long enough if such a perturbation passes the filter.

        >>> row = {"prompt": "John is", "perturbed_prompt": "Jane is", "axis": "gender"}
        >>> TextFilter().n_missing(row), TextFilter().n_missing(row, "John is so tired that he sat")
        (22, 18)
        """
        pronouns = (" He", " She") if prompt["axis"] == "gender" else ("", "")
        texts = prompt["prompt"], prompt["perturbed_prompt"]
        a, b = (self.units(one + more) for one, more in zip(texts, pronouns, strict=True))
        n_needed = math.ceil(len(a ^ b) / self.limit - 1e-9)
        return max(n_needed - len(a | b | self.units(text)), 0)


#: The filter of section 3.3 in the paper, but for words instead of tokens.
DEFAULT = TextFilter()


def perturb_set(
    store: Store,
    probe_set: str,
    model_key: str,
    sampling_key: str,
    perturber: Perturber,
    run_id: str,
    *,
    text_filter: TextFilter = DEFAULT,
) -> PerturbedSamples:
    """Perturb a model's stored continuations of a set, and write a row for each of them.

    Replaces earlier rows of this perturber and filter. If a text can't be perturbed or fails a
    check, its row states the reason. Returns the key columns of the rows. Call
    ``check_counterparts`` and, for rules, ``check_rules`` first. Raises ``BadInput`` if a
    continuation's prompt is not in ``probe_prompt``. Also raises what the perturber raises.
    """
    read = store.read("probe_prompt", probe_set=probe_set).to_pylist()
    prompts = {prompt["prompt_id"]: prompt for prompt in read}
    keys = {"probe_set": probe_set, "model_key": model_key, "sampling_key": sampling_key}
    ids = ["prompt_id", "side", "sample"]
    continuations = store.read("continuation", **keys)
    continuations = continuations.sort_by([(name, "ascending") for name in ids])
    rows = continuations.select([*ids, "continuation"]).to_pylist()
    originals = [_original(row, prompts) for row in rows]
    perturbed = PerturbedSamples(**keys, perturber=text_filter.named(perturber.name))
    out = []
    for row, one, made in zip(rows, originals, perturber.perturb(originals), strict=True):
        texts = one.text, one.perturbed_prompt, one.entity.name
        checked = check(made, *texts, text_filter, prompts[row["prompt_id"]])
        of_row = {name: row[name] for name in ids}
        out.append({**of_row, **checked})
    store.replace("perturbed_continuation", out, asdict(perturbed), run_id)
    return perturbed


def check_counterparts(probe_set: str, rows: Sequence[Row]) -> None:
    """Raise ``UsageProblem`` if there are no prompts, or if a prompt lacks its perturbed version.

    >>> check_counterparts("novel", [])
    Traceback (most recent call last):
    ...
    plumbline.warehouse.errors.UsageProblem: probe set novel: has no prompts (perturb a set made \
from names)
    """
    needed = ("perturbed_prompt", "entity", "perturbed_entity", "axis")
    if not rows or any(row[name] is None for row in rows for name in needed):
        problem = "has prompts without a counterpart" if rows else "has no prompts"
        raise UsageProblem(f"probe set {probe_set}", problem, "perturb a set made from names")


def _original(row: Row, prompts: Mapping[str, Row]) -> Original:
    prompt = prompts.get(row["prompt_id"])
    if prompt is None:
        problem = f"prompt {row['prompt_id']} of a continuation is not in probe_prompt"
        raise BadInput("table continuation", problem, "make the prompts again, or sample again")
    first = Entity(prompt["entity"], prompt["entity_group"] or "")
    second = Entity(prompt["perturbed_entity"], prompt["perturbed_group"] or "")
    texts = (prompt["prompt"], prompt["perturbed_prompt"])
    if row["side"] == "perturbed":
        first, second, texts = second, first, texts[::-1]
    text = texts[0] + row["continuation"]
    return Original(text, texts[1], first, second, prompt["axis"])


def check(
    perturbed: Perturbed,
    original: str,
    prompt: str,
    name: str,
    text_filter: TextFilter = DEFAULT,
    row: Row | None = None,
) -> dict[str, Any]:
    """Check a perturbed text; return columns of its row in ``perturbed_continuation``.

    The perturbed text must start with the perturbed ``prompt``. It must not mention the original
    person's ``name``, as written or in capitals. Its dissimilarity to ``original`` must not exceed
    the filter's limit. Column ``reason`` states the first check that failed. If the
    limit is exceeded, the reason is ``SHORT`` if ``original`` is too short. ``n_missing`` finds
    this from the prompt's ``row``. ``dissimilarity`` is ``None`` if there is no perturbed text.

    >>> check(Perturbed("Jane is a clerk."), "John is a clerk.", "Jane is", "John")["reason"]
    'differs in too many words from the original'
    """
    text, reason, distance = perturbed.text, perturbed.reason, None
    if text is not None:
        distance = text_filter.dissimilarity(text, original)
        mentions = rf"(?<![^\W_])(?:{re.escape(name)}|{re.escape(name.upper())})(?![^\W_])"
        if not text.startswith(prompt):
            reason = PROMPT
        elif re.search(mentions, text):
            reason = NAME
        elif distance > text_filter.limit:
            is_short = row is not None and text_filter.n_missing(row, original)
            reason = SHORT if is_short else DISSIMILAR.format(text_filter.unit)
    checked = {"perturbed_text": text, "is_valid": reason is None}
    return {**checked, "reason": reason, "dissimilarity": distance}
