"""Rows of ``benchmark_pair`` from written sentences, each with a pair or a reason. Pure."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from plumbline.eval_workers.chat.replies import sentences
from plumbline.eval_workers.chat.requests import ChatModel, Reply, Request
from plumbline.eval_workers.pairs.benchmarks import Parsed, Row
from plumbline.eval_workers.pairs.pronouns.conversion import Conversion, to_template
from plumbline.eval_workers.pairs.pronouns.conversion_check import answered, check_conversion
from plumbline.eval_workers.pairs.pronouns.pronoun_templates import fill
from plumbline.eval_workers.writing.wordings import Wordings, fill_prompt
from plumbline.eval_workers.writing.written_sentences import WrittenSentence


@dataclass(frozen=True)
class Paired:
    """Pairs and rejects, together one per sentence: rows of ``benchmark_pair`` without
    ``benchmark``, and of ``reject`` without ``run_id``.
    """

    pairs: tuple[Row, ...]
    rejects: tuple[Row, ...]


def pair_id(word: str, template: str) -> str:
    """Identifier of a pair: its word and a hash of its template.

    >>> pair_id("tea", "{pronoun} drank tea.")
    'tea-d6214149ed'
    """
    return f"{word}-{hashlib.sha256(template.encode()).hexdigest()[:10]}"


def undecided(sentences: Sequence[WrittenSentence]) -> list[WrittenSentence]:
    """Sentences with a "her" that the rules can't decide on; the model converts them.

    >>> texts = ["They saw her smile.", "She lost her key."]
    >>> [s.text for s in undecided([WrittenSentence(t, "w", "she", "r", 1) for t in texts])]
    ['They saw her smile.']
    """
    return [sentence for sentence in sentences if to_template(sentence.text).undecided]


def paired(
    name: str,
    sentences: Sequence[WrittenSentence],
    conversions: Mapping[WrittenSentence, Converted],
) -> Paired:
    """Pair sentences in their order; ``conversions`` are those of the undecided ones.

    >>> both = paired("demo", [WrittenSentence("Her tea was hot.", "tea", "she", "r", 1),
    ...                        WrittenSentence("The tea was hers.", "tea", "she", "r", 2)], {})
    >>> [row["sentence_b"] for row in both.pairs], [row["reason"] for row in both.rejects]
    (['His tea was hot.'], ['holds "hers", which no placeholder stands for'])
    """
    parsed, subject = Parsed(name), {"stage": "generate", "subject": f"{name}/pair"}
    words: dict[str, str] = {}
    for sentence in sentences:
        template, problem = _template(sentence, conversions.get(sentence))
        if not problem and template in words:
            problem = f"repeats a sentence of the word {words[template]}"
        if problem:
            parsed.reject(sentence.request_id, sentence.position, problem, sentence.text)
            continue
        words[template] = sentence.word
        parsed.add(
            pair_id=pair_id(sentence.word, template),
            template=template,
            word=sentence.word,
            source_file=sentence.request_id,
            source_row=sentence.position,
        )
    return Paired(tuple(parsed.pairs), tuple(row | subject for row in parsed.rejects))


def _template(sentence: WrittenSentence, converted: Converted | None) -> tuple[str, str]:
    """The template of a sentence, or why it can't have one."""
    ours: Conversion = to_template(sentence.text)
    if ours.undecided and converted and converted.sentence is not None:
        answer = answered(ours, converted.sentence)
        ours = answer if isinstance(answer, Conversion) else ours
    if ours.problem:
        return "", ours.problem
    if ours.template is None or ours.gender is None:
        last = f": {converted.reason}" if converted and converted.reason else ""
        return "", f'whether "her" is his or him stays undecided{last}'
    # A template holds no capitals: "At 5 p.m. she left" would come back as "She left".
    if fill(ours.template, ours.gender) != sentence.text:
        return "", "a template can't keep the capitals of its pronouns"
    return ours.template, ""


#: Times a conversion is asked for; the first at temperature 0.
CONVERSION_ROUNDS = 3
_TOKENS_A_CHARACTER, _TOKENS_OF_TALK = 1, 64


@dataclass(frozen=True)
class Converted:
    """State of a conversion: it is done when there are no ``requests``.

    Without a ``sentence`` then, ``reason`` says what was wrong with the last answer.
    """

    requests: tuple[Request, ...]
    sentence: str | None = None
    reason: str = ""


def conversion(
    sentence: WrittenSentence, model: ChatModel, prompts: Wordings, replies: Mapping[str, Reply]
) -> Converted:
    """Next request or the result of changing a sentence's pronouns to those of *he*.

    An answer that changes anything else, or holds no sentence, is asked for again.
    """
    reason = ""
    for round in range(1, CONVERSION_ROUNDS + 1):
        request = model.request(
            "convert",
            fill_prompt(prompts.convert, sentence=sentence.text, pronoun="he"),
            word=sentence.word,
            pronoun="he",
            round=round,
            temperature=0 if round == 1 else 0.7,
            max_tokens=len(sentence.text) * _TOKENS_A_CHARACTER + _TOKENS_OF_TALK,
        )
        reply = replies.get(request.request_id)
        if reply is None:
            return Converted((request,))
        answers = sentences(reply.text)
        problems = check_conversion(sentence.text, answers[0]) if answers else ()
        if answers and not problems:
            return Converted((), answers[0])
        reason = problems[0].message if problems else "the reply holds no sentence"
    return Converted((), None, reason)
