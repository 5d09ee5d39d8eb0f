"""WinoBias (Zhao et al., NAACL 2018): 1,586 templates with two occupations and pronouns.

These are the development and test parts together, as the published figures use them. They are read
from UnStereoEval's released tables, or from WinoBias' own files of marked sentences.

A pair has the pronouns of both genders. The authors sorted their sentences into pro- and
anti-stereotypical ones: ``direction`` is the sentence that follows the stereotype, and
``stereotype`` is `pro` or `anti` for the masculine sentence.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from itertools import zip_longest
from pathlib import Path

from plumbline.eval_workers.pairs.benchmarks import Parsed, Row
from plumbline.eval_workers.pairs.benchmarks.own.parsed_pairs import RELEASED, add_released, located
from plumbline.eval_workers.pairs.pronouns.pronoun_templates import PRONOUNS
from plumbline.warehouse.errors import BadInput
from plumbline.warehouse.input.input_rows import read_text

NAMES = ("winobias",)
DESCRIPTION = "WinoBias: two occupations and a pronoun, development and test parts"
DEFAULT_LOCATION = RELEASED

_SPLITS = ("dev", "test")
#: Columns of a pair, by whether its masculine sentence is the pro-stereotypical one. The released
#: tables have only sentences with masculine pronouns, and say which file each comes from.
_SIDES = ({"stereotype": "anti", "direction": "a"}, {"stereotype": "pro", "direction": "b"})
_OWN_FILE = "{side}_stereotyped_type{kind}.txt.{split}"
_WORD = re.compile(r"[a-z]+")
_PRONOUN_MARK = re.compile(r"\[(he|she|his|hers?|him|himself|herself)\]", re.IGNORECASE)
_REFERENT_MARK = re.compile(r"\[(?:the|an?) (?:\w+ )*(\w+)\]", re.IGNORECASE)
_MARK = re.compile(r"[\[\]]")
_LINE_NUMBER = re.compile(r"\d+ ")
_PLACEHOLDERS = {
    frozenset((PRONOUNS["f"][placeholder], PRONOUNS["m"][placeholder])): placeholder
    for placeholder in PRONOUNS["f"]
}


def read(name: str, source: Path | None) -> Parsed:
    """The pairs of both parts, from a directory with the two released tables or WinoBias' files.

    41 released templates keep the square brackets around a second pronoun of the same person, since
    the published scores were made with them. WinoBias' own sentences lose all their brackets.
    """
    if source and (source / _OWN_FILE.format(side="pro", kind=1, split="dev")).is_file():
        return _read_own(name, source)
    if source and not source.is_dir():
        problem = f"{source} is a file, expected a directory with one table per part: dev, test"
        raise BadInput(f"benchmark {name}", problem)
    parsed = Parsed(name)
    for split in _SPLITS:
        path = located(name, source, f"coref__Winobias__templates.{split}")

        def columns(fields: Mapping[str, str], split: str = split) -> Row:
            return {"split": split, **_SIDES[fields["stereotype"] == "True"]}

        add_released(parsed, path, "stereotype", columns, prefix=f"{split}-")
    return _with_occupations(parsed)


def _with_occupations(parsed: Parsed) -> Parsed:
    """Set up to two clusters of each pair: its ``word``, then words that are the word of a pair."""
    occupations = {str(pair["word"]).lower() for pair in parsed.pairs if pair.get("word")}
    for pair in parsed.pairs:
        words = _WORD.findall(str(pair["template"]).lower())
        named = [*filter(None, [pair.get("word")]), *(w for w in words if w in occupations)]
        clusters = [f"occupation: {word}" for word in dict.fromkeys(named)]
        pair |= dict(zip(("cluster", "cluster_2"), clusters, strict=False))
    return parsed


def _read_own(name: str, source: Path) -> Parsed:
    """Line n of the pro and line n of the anti file make a pair if they differ only in pronouns."""
    parsed = Parsed(name)
    for split in _SPLITS:
        for kind in (1, 2):
            pro, anti = (
                source / _OWN_FILE.format(side=side, kind=kind, split=split)
                for side in ("pro", "anti")
            )
            lines = zip_longest(_lines(pro), _lines(anti), fillvalue="")
            for number, (first, second) in enumerate(lines, start=1):
                template = _template(first, second)
                if template is None:
                    reason = f"line {number} of {pro.name} and {anti.name} differ beyond pronouns"
                    parsed.reject(pro.name, number, reason, f"{first} | {second}")
                    continue
                referents = _REFERENT_MARK.findall(first)
                parsed.add(
                    pair_id=f"{split}-{kind}-{number:05d}",
                    template=template,
                    word=referents[0].lower() if len(referents) == 1 else None,
                    split=split,
                    **_SIDES[_PRONOUN_MARK.findall(first)[0].lower() in PRONOUNS["m"].values()],
                    source_file=pro.name,
                    source_row=number,
                )
    return _with_occupations(parsed)


def _lines(path: Path) -> list[str]:
    if not path.is_file():
        raise BadInput(f"{path}", "does not exist", "give as --source a directory of all 8 files")
    text = read_text(path)
    lines = text.removesuffix("\n").split("\n") if text else []
    return [_LINE_NUMBER.sub("", line, count=1).strip() for line in lines]


def _template(pro: str, anti: str) -> str | None:
    """The template of two marked sentences that differ in their pronouns alone, else ``None``.

    >>> _template("[The cook] lost [his] pan.", "[The cook] lost [her] pan.")
    'The cook lost {pronoun1} pan.'
    >>> _template("The cook saw [him].", "The cooks saw [her].") is None
    True
    """
    pieces, anti_pieces = (_PRONOUN_MARK.split(sentence) for sentence in (pro, anti))
    texts, other_texts = (
        [_MARK.sub("", text) for text in side[::2]] for side in (pieces, anti_pieces)
    )
    if texts != other_texts:
        return None
    pronouns = zip(pieces[1::2], anti_pieces[1::2], strict=True)
    places = [_PLACEHOLDERS.get(frozenset((a.lower(), b.lower()))) for a, b in pronouns]
    if None in places:
        return None
    return "".join(f"{text}{place}" for text, place in zip(texts, [*places, ""], strict=True))
