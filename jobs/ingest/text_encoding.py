"""A guess at the encoding of a text that isn't UTF-8, with the evidence for it."""

from __future__ import annotations

import codecs
import re
import unicodedata
from dataclasses import dataclass
from itertools import islice

from plumbline.warehouse.text.escape import terminal

#: Western first: if several encodings fit equally well, the first is the guess.
_CANDIDATES = ("cp1252", "cp1250", "iso8859-2", "mac-roman", "cp850", "cp1251", "koi8-r", "cp1253")
#: Words around bytes that are not ASCII.
_WORD = re.compile(rb"[!-\x7e]{0,30}[\x80-\xff][!-\xff]{0,60}")
_MOST_WORDS, _SHOWN = 1000, 3
_OPENING, _CLOSING = frozenset("“‘«„¿¡£§"), frozenset("”»“…€°²³½®©™")
_BETWEEN = frozenset("’–—\xa0")
#: Bytes of control characters, except white space; the high bytes of most letters in UTF-16.
_CONTROLS = bytes({*range(32)} - {*b"\t\n\v\f\r"})
#: Least share of non-ASCII characters in place for a guess.
_LEAST = 0.8


@dataclass(frozen=True)
class Guess:
    """An encoding, the share of non-ASCII characters in place, and the first words that have any.

    For UTF-16 the share is 1 and the words are the text's first. ``others`` are encodings that
    fit equally well and give another text.
    """

    name: str
    share: float
    words: str
    others: tuple[str, ...] = ()

    def __str__(self) -> str:
        others = f" (or {', '.join(self.others)})" if self.others else ""
        return f"{self.name}{others} fits {self.share:.0%} of what isn't ASCII: {self.words}"


def has_controls(data: bytes) -> bool:
    """True if more than a tenth of the bytes are control characters, as in UTF-16.

    >>> has_controls("Tea.".encode("utf-16-le")), has_controls(b"Tea.\\n"), has_controls(b"")
    (True, False, False)
    """
    return _n_controls(data) * 10 > len(data)


def _n_controls(data: bytes) -> int:
    return len(data) - len(data.translate(None, _CONTROLS))


def guess_encoding(data: bytes) -> Guess | None:
    """The likeliest encoding of a text, or ``None`` if no encoding fits.

    It tries UTF-16, and the usual encodings of Western, Central European,
    Cyrillic and Greek text. An encoding is rated by the share of non-ASCII characters that are in
    place: letters among letters of their script and in fitting case, quotation marks at the ends of
    words.

    >>> print(guess_encoding("Un café, s’il vous plaît.".encode("cp1252")))
    cp1252 fits 100% of what isn't ASCII: café s’il plaît
    >>> print(guess_encoding("W dużym mieście żył krawiec.".encode("cp1250")))
    cp1250 fits 100% of what isn't ASCII: dużym mieście żył
    >>> guess_encoding(bytes(range(128, 256)) * 9) is None
    True
    """
    if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)) and (text := _text(data)):
        return Guess("utf-16", 1.0, _first(text.split()))
    if has_controls(data):
        high_last = _n_controls(data[1::2]) > _n_controls(data[::2])
        name = "utf-16-le" if high_last else "utf-16-be"
        text = _text(data, name)
        return Guess(name, 1.0, _first(text.split())) if text and "\0" not in text else None
    samples = [match.group() for match in islice(_WORD.finditer(data), _MOST_WORDS)]
    guesses = dict[str, tuple[float, list[str]]]()
    for name in _CANDIDATES:
        if b"\0" not in data and _text(data, name):
            words = [word.decode(name) for word in samples]
            guesses[name] = _share(words), words
    share, words = max(guesses.values(), key=lambda guess: guess[0], default=(0.0, []))
    if share < _LEAST:
        return None
    best, *others = [name for name, guess in guesses.items() if guess[0] == share]
    differ = tuple(name for name in others if guesses[name][1] != guesses[best][1])
    return Guess(best, share, _first(guesses[best][1]), differ)


def _text(data: bytes, encoding: str = "utf-16") -> str:
    try:
        return data.decode(encoding)
    except UnicodeDecodeError:
        return ""


def _first(words: list[str]) -> str:
    return terminal(" ".join(word.rstrip(".,;:") for word in list(dict.fromkeys(words))[:_SHOWN]))


def _share(words: list[str]) -> float:
    """Share of the non-ASCII characters that are in place."""
    in_place = [
        _is_in_place(*around)
        for word in words
        for around in zip(f" {word[:-1]}", word, f"{word[1:]} ", strict=True)
        if around[1] > "\x7f"
    ]
    return sum(in_place) / max(len(in_place), 1)


def _is_in_place(before: str, character: str, after: str) -> bool:
    """True if a character can stand between two others.

    >>> _is_in_place("f", "é", " "), _is_in_place("f", "È", "r"), _is_in_place("a", "й", "b")
    (True, False, False)
    """
    sides = [side for side in (before, after) if side.isalpha()]
    if not character.isalpha():
        is_open = character in _OPENING and not before.isalpha()
        return character in _BETWEEN or is_open or (character in _CLOSING and not after.isalpha())
    script = _script(character)
    if any(_script(side) != script for side in sides):
        return False
    if script == "LATIN" and len(sides) == 2 and min(sides) > "\x7f":
        return False  # three non-ASCII letters in a row: text of another script
    if character.isupper():
        return not before.islower() and bool(sides)
    return not after.isupper()


def _script(letter: str) -> str:
    return unicodedata.name(letter, "").partition(" ")[0]
