"""Find and check the placeholders in templates."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from itertools import chain
from string import Formatter

#: Placeholders for pronouns: ``{pronoun}`` (he/she), ``{pronoun1}`` (his/her), ``{pronoun2}``
#: (him/her) and ``{pronoun2}self`` (himself/herself), which counts as one.
PLACEHOLDER = re.compile(r"\{pronoun2\}self\b|\{pronoun[12]?\}")
#: Any placeholder: for a pronoun, or a word in braces such as ``{kin}`` or ``{differs}``.
ANY_PLACEHOLDER = re.compile(rf"{PLACEHOLDER.pattern}|\{{\w+\}}")


def _names_in(template: str) -> list[str]:
    """Return the placeholders of a ``str.format`` template, each with its conversion and format."""
    try:
        parts = [part for part in Formatter().parse(template) if part[1] is not None]
    except ValueError as e:  # the template has an unmatched brace
        raise ValueError(f"{e}; write a literal brace twice") from None
    return [
        f"{name}{f'!{change}' if change else ''}{f':{spec}' if spec else ''}"
        for _, name, spec, change in parts
    ]


def holding(needed: Sequence[str], further: Sequence[str] = ()) -> Callable[[str], str]:
    """Return a function that checks the placeholders of a template.

    A valid template has all ``needed`` placeholders; ``a|b`` means at least one of the two. It may
    have ``further`` placeholders, but no others. The function returns a valid template unchanged,
    and raises ``ValueError`` for any other.

    >>> check = holding(["n", "pronoun|forms"])
    >>> check("Write {n} with {forms}.")
    'Write {n} with {forms}.'
    >>> check("Write {m}.")
    Traceback (most recent call last):
    ...
    ValueError: {m} is not a placeholder (known here: {n}, {pronoun}, {forms})
    """
    choices = [choice.split("|") for choice in needed]
    known = [*chain.from_iterable(choices), *further]

    def checked(template: str) -> str:
        names, fix = _names_in(template), f"known here: {_braced(known)}"
        for name in names:
            if name not in known:
                raise ValueError(f"{{{name}}} is not a placeholder ({fix})")
        for choice in choices:
            if not set(choice) & set(names):
                raise ValueError(f"{_braced(choice, ' or ')} is missing ({fix})")
        return template

    return checked


def _braced(names: Sequence[str], between: str = ", ") -> str:
    return between.join(f"{{{name}}}" for name in names)
