"""Pairs of a language other than English, from the templates in its file.

A sentence is usable when everything but the group's own word keeps its form. That a word does can't
be told from outside (French *grande* agrees, *calme* doesn't), so a language's file lists the words
that do, and a template with any other word is refused.
"""

from __future__ import annotations

import re
from itertools import product
from pathlib import Path

from plumbline.eval_workers.pairs.benchmarks._parsed import Parsed
from plumbline.warehouse import languages
from plumbline.warehouse.errors import BadInput
from plumbline.warehouse.languages import PairTemplates

_SUFFIX = "-pairs"
NAMES = tuple(
    f"{code}{_SUFFIX}" for code in languages.LANGUAGES.names() if code != languages.ENGLISH
)
DESCRIPTION = (
    "As Elle/Il est médecin, in the language of the name: occupations, adjectives of one form; ours"
)
DEFAULT_LOCATION: str | None = None

_PLACEHOLDER = re.compile(r"\{(\w+)\}")
_WORD = re.compile(r"[^\W_]+")


def read(name: str, source: Path | None) -> Parsed:
    """All pairs; ``source`` is a language's file, by default that of the code in ``name``.

    ``source_row`` numbers the sentences; a template that is refused is one row. Raises ``BadInput``
    for a file that is not a language's, or has no ``[pairs]``.

    >>> parsed = read("fr-pairs", None)
    >>> [parsed.pairs[1][side] for side in ("sentence_a", "sentence_b")], len(parsed.rejects)
    (['Elle est médecin.', 'Il est médecin.'], 0)
    """
    language = languages.load(str(source) if source else name.removesuffix(_SUFFIX))
    if language.pairs is None:
        fix = "templates of sentences, see docs/languages.md"
        raise BadInput(f"language {language.name}", "has no [pairs]", f"expected {fix}")
    parsed, row = Parsed(name), 0
    file = source.name if source else f"warehouse/languages/{language.name}.toml"
    for number, template in enumerate(language.pairs.templates, 1):
        row += 1
        if problem := refusal(template, language.pairs):
            parsed.reject(file, row, problem, template)
            continue
        for text, words, kinds in _filled(template, language.pairs):
            sides = (_sentence(text, language.pairs, side) for side in (0, 1))
            pair = dict(zip(("sentence_a", "sentence_b"), sides, strict=True))
            identifier = "-".join([str(number), *words])
            parsed.take(
                [
                    {
                        **pair,
                        "pair_id": identifier,
                        "item_id": identifier,
                        "template": _differing(text, language.pairs),
                        "group_a": "female",
                        "group_b": "male",
                        "pronoun_first": text.startswith("{"),
                        "word": words[0] if words else None,
                        "category": kinds[0] if kinds else None,
                        "source_file": file,
                        "source_row": row,
                    }
                ]
            )
            row += 1
        row -= 1
    return parsed


def refusal(template: str, pairs: PairTemplates) -> str:
    """Why a template makes no pairs; empty when it does.

    >>> pairs = languages.load("fr").pairs
    >>> refusal("{pronoun} est {adjective}.", pairs)
    ''
    >>> refusal("{pronoun} est contente.", pairs)
    "whether 'contente' keeps its form is not known: if so, list it in [pairs] invariable"
    """
    names, forms = set(_PLACEHOLDER.findall(template)), set(pairs.forms)
    if unknown := sorted(names - forms - set(pairs.fill)):
        return f"no [pairs.forms] or [pairs.fill] has {{{unknown[0]}}}"
    if not names & forms:
        return f"no placeholder for the groups, such as {{{min(forms)}}}"
    for word in _WORD.findall(_PLACEHOLDER.sub(" ", template)):
        if word.lower() not in pairs.invariable:
            fix = "if so, list it in [pairs] invariable"
            return f"whether {word!r} keeps its form is not known: {fix}"
    return ""


def _filled(
    template: str, pairs: PairTemplates
) -> list[tuple[str, tuple[str, ...], tuple[str, ...]]]:
    """The template with each choice of words, the words, and the placeholders that they fill."""
    slots = [(name, words) for name, words in pairs.fill.items() if f"{{{name}}}" in template]
    kinds, found = tuple(name for name, _ in slots), []
    for words in product(*(words for _, words in slots)):
        text = template
        for kind, word in zip(kinds, words, strict=True):
            text = text.replace(f"{{{kind}}}", word)
        found.append((text, words, kinds))
    return found


def _differing(text: str, pairs: PairTemplates) -> str:
    """The template as table `benchmark_pair` has it: without forms of English."""
    for name in pairs.forms:
        text = text.replace(f"{{{name}}}", "{differs}")
    return text


def _sentence(text: str, pairs: PairTemplates, side: int) -> str:
    for name, both in pairs.forms.items():
        text = text.replace(f"{{{name}}}", both[side])
    return text[:1].upper() + text[1:]
