"""Makes pairs in a language other than English, from the templates in the language's file.

Apart from its placeholders, a template may only have words that are the same for both groups. So
French *calme* is allowed, but *grande* isn't, since it is feminine. The language's file lists the
allowed words. A template with any other word is rejected.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from pathlib import Path

from plumbline.eval_workers.pairs.parsed_pairs import DIFFERS, USUAL, Parsed, pair_row
from plumbline.warehouse import languages
from plumbline.warehouse.errors import BadInput
from plumbline.warehouse.languages import PairTemplates

_SUFFIX = "-pairs"
NAMES = tuple(
    f"{code}{_SUFFIX}" for code in languages.LANGUAGES.names() if code != languages.ENGLISH
)
DESCRIPTION = (
    "Our own pairs in another language, such as Elle/Il est médecin; all other words are the same"
)
DEFAULT_LOCATION: str | None = None

_PLACEHOLDER = re.compile(r"\{(\w+)\}")
_WORD = re.compile(r"[^\W_]+")


def read(name: str, source: Path | None) -> Parsed:
    """Return all pairs from a language's file: ``source``, or by default our own file.

    Each filled template, and each rejected template, has its own ``source_row``.
    Raises ``BadInput`` if the file doesn't describe a language or has no ``[pairs]``.

    >>> parsed = read("fr-pairs", None)
    >>> [parsed.pairs[1][side] for side in ("sentence_a", "sentence_b")], len(parsed.rejects)
    (['Elle est médecin.', 'Il est médecin.'], 0)
    """
    language = languages.load(str(source) if source else name.removesuffix(_SUFFIX))
    if language.pairs is None:
        fix = "add templates of sentences, see docs/corpora.md"
        raise BadInput(f"language {language.name}", "has no [pairs]", fix)
    parsed, row, forms = Parsed(name), 0, language.pairs.forms
    file = source.name if source else f"warehouse/languages/{language.name}.toml"
    for number, template in enumerate(language.pairs.templates, 1):
        if problem := refusal(template, language.pairs):
            row += 1
            parsed.reject({"source_file": file, "source_row": row}, problem, template)
            continue
        for text, words in _filled(template, language.pairs):
            row += 1
            pair = pair_row(
                "-".join([str(number), *words.values()]),
                _replaced(text, dict.fromkeys(forms, DIFFERS)),
                (_sentence(text, forms, 0), _sentence(text, forms, 1)),
                USUAL,
                pronoun_first=text.startswith("{"),
                word=next(iter(words.values()), None),
                category=next(iter(words), None),
                source_file=file,
                source_row=row,
            )
            parsed.take([pair])
    return parsed


def refusal(template: str, pairs: PairTemplates) -> str:
    """Return why a template can't make pairs. Return an empty string if it can.

    >>> pairs = languages.load("fr").pairs
    >>> refusal("{pronoun} est {adjective}.", pairs)
    ''
    >>> refusal("{pronoun} est contente.", pairs)
    "'contente' may change with the group: if it doesn't, list it in [pairs] invariable"
    """
    names, forms = set(_PLACEHOLDER.findall(template)), set(pairs.forms)
    if unknown := sorted(names - forms - set(pairs.fill)):
        return f"no [pairs.forms] or [pairs.fill] has {{{unknown[0]}}}"
    if not names & forms:
        return f"no placeholder for the groups, such as {{{min(forms)}}}"
    for word in _WORD.findall(_PLACEHOLDER.sub(" ", template)):
        if word.lower() not in pairs.invariable:
            fix = "if it doesn't, list it in [pairs] invariable"
            return f"{word!r} may change with the group: {fix}"
    return ""


def _filled(template: str, pairs: PairTemplates) -> Iterator[tuple[str, dict[str, str]]]:
    """Yield each way to fill the template: the text, and a map from placeholders to words."""
    slots = {name: words for name, words in pairs.fill.items() if f"{{{name}}}" in template}
    for choice in product(*slots.values()):
        words = dict(zip(slots, choice, strict=True))
        yield _replaced(template, words), words


def _replaced(text: str, words: Mapping[str, str]) -> str:
    for name, word in words.items():
        text = text.replace(f"{{{name}}}", word)
    return text


def _sentence(text: str, forms: Mapping[str, Sequence[str]], side: int) -> str:
    filled = _replaced(text, {name: by_group[side] for name, by_group in forms.items()})
    return filled[:1].upper() + filled[1:]
