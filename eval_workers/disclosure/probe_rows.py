"""Rows of ``pronoun_probability`` and ``reject`` from the scores of prompts with words behind."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from plumbline.eval_workers.disclosure.attributes import (
    prompt_problem,
    usable_pairs,
    word_probability,
    words_of,
)
from plumbline.eval_workers.rejects import reject_row
from plumbline.warehouse.wordlists import WordList

if TYPE_CHECKING:
    from plumbline.eval_workers.backends.base import TextScore

Row = dict[str, Any]
_SUBJECT = ("probe_set", "model_key", "word_list", "instruction_key")


@dataclass
class ProbeRows:
    """Rows of prompts, rejected prompts, a reject for each word that can't be spelled.

    ``hopeless`` is why a prompt was rejected of which no pair could be spelled; empty without.
    """

    rows: list[Row] = field(default_factory=list)
    rejects: list[Row] = field(default_factory=list)
    unspelled: list[Row] = field(default_factory=list)
    hopeless: str = ""


def probe_rows(
    prompts: Sequence[Row], words: WordList, scores: Mapping[str, TextScore], shared: Row
) -> ProbeRows:
    """Everything that is published of some prompts.

    ``prompts`` are rows of ``probe_prompt`` with their text as ``sent`` and ``text_id``;
    ``shared`` are the columns that all rows of ``pronoun_probability`` share.
    """
    made = ProbeRows()
    genders = words_of(words.pairs, f"word list {words.name}")
    problems: dict[str, tuple[str, int]] = {}
    for prompt in prompts:
        text = prompt["sent"]
        if problem := prompt_problem(text) or scores[text].problem:
            made.rejects.append(_rejected(shared, prompt, problem))
            continue
        found = {word: word_probability(text, word, scores) for word in genders}
        for word, one in found.items():
            if one.problem:
                first, n = problems.get(word, (one.problem, 0))
                problems[word] = first, n + 1
        pairs = usable_pairs(words.pairs, found)
        if not pairs:
            word = next(word for word, one in found.items() if one.problem)
            made.hopeless = f"{word!r}: {found[word].problem}"
            reason = f"no pair of words can be spelled after it; {made.hopeless}"
            made.rejects.append(_rejected(shared, prompt, reason))
            continue
        made.rows += [
            {
                **shared,
                "prompt_id": prompt["prompt_id"],
                "word": word,
                "gender": genders[word],
                "probability": found[word].probability,
                "n_variants": found[word].n_variants,
                "text_id": prompt["text_id"],
            }
            for word in words_of(pairs, words.name)
        ]
    n_prompts = len(prompts)
    made.unspelled = [
        _unspelled(shared, words, word, f"{reason} (after {n} of {n_prompts} prompts)")
        for word, (reason, n) in problems.items()
    ]
    return made


def _rejected(shared: Row, prompt: Row, reason: str) -> Row:
    return _reject(
        shared, prompt["source_file"], prompt["source_row"], reason, excerpt=prompt["prompt"]
    )


def _unspelled(shared: Row, words: WordList, word: str, reason: str) -> Row:
    """The place is the list and the first pair that the word is in."""
    pair = next(i for i, p in enumerate(words.pairs, 1) if word in (p.female, p.male))
    return _reject(shared, words.name, pair, reason, excerpt=word)


def _reject(shared: Row, source_file: str, source_row: int, reason: str, excerpt: str) -> Row:
    row = reject_row(
        stage="probe",
        subject="/".join(str(shared[name]) for name in _SUBJECT),
        source_file=source_file,
        source_row=source_row,
        reason=reason,
        excerpt=excerpt,
    )
    return {**row, "run_id": shared["run_id"]}
