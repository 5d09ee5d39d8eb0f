"""Written sentences to rows of ``benchmark_pair``, every one with a pair or a reason. Pure.

Where rules can't decide on a pronoun, the chat model converts the sentence.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from plumbline.eval_workers.chat.replies import sentences
from plumbline.eval_workers.chat.requests import ChatModel, Pronoun, Reply, Request
from plumbline.eval_workers.pairs.benchmarks import Parsed, Row
from plumbline.eval_workers.pairs.pronouns.conversion import Conversion, to_template
from plumbline.eval_workers.pairs.pronouns.conversion_check import answered, check_conversion
from plumbline.eval_workers.pairs.pronouns.templates import fill
from plumbline.eval_workers.writing.prompts import Prompts, fill_prompt
from plumbline.eval_workers.writing.write import Sentence


@dataclass(frozen=True)
class Paired:
    """Sentences = ``pairs`` + ``rejects``: rows of ``benchmark_pair`` without ``benchmark``, and
    rows of ``reject`` without ``run_id``.
    """

    pairs: tuple[Row, ...]
    rejects: tuple[Row, ...]


def pair_id(word: str, template: str) -> str:
    """Identifier of a pair: its word and a hash of its template, so that it never names another.

    >>> pair_id("tea", "{pronoun} drank tea.")
    'tea-d6214149ed'
    """
    return f"{word}-{hashlib.sha256(template.encode()).hexdigest()[:10]}"


def fault(original: str, converted: str) -> str | None:
    """What is wrong with somebody's conversion of a sentence, or ``None``.

    >>> fault("They saw her smile.", "They saw his smile."), fault("She ran.", "She ran.")
    (None, '"She" stayed "She", expected "He"')
    """
    problems = check_conversion(original, converted)
    return problems[0].message if problems else None


def undecided(sentences: Sequence[Sentence]) -> list[Sentence]:
    """The sentences with a "her" that the rules can't tell: somebody has to convert them.

    >>> texts = ["They saw her smile.", "She lost her key."]
    >>> [s.text for s in undecided([Sentence(t, "w", "she", "r", 1) for t in texts])]
    ['They saw her smile.']
    """
    return [sentence for sentence in sentences if to_template(sentence.text).undecided]


def paired(
    name: str, sentences: Sequence[Sentence], conversions: Mapping[Sentence, Converted]
) -> Paired:
    """Pair sentences in their order; ``conversions`` are those of the undecided ones.

    >>> found = paired("demo", [Sentence("Her tea was hot.", "tea", "she", "r", 1),
    ...                         Sentence("The tea was hers.", "tea", "she", "r", 2)], {})
    >>> [row["sentence_b"] for row in found.pairs], [row["reason"] for row in found.rejects]
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


def _template(sentence: Sentence, converted: Converted | None) -> tuple[str, str]:
    """The template of a sentence, or why it can't have one."""
    conversion: Conversion = to_template(sentence.text)
    if conversion.undecided and converted is not None and converted.sentence is not None:
        answer = answered(conversion, converted.sentence)
        if isinstance(answer, Conversion):
            conversion = answer
    if conversion.problem:
        return "", conversion.problem
    if conversion.template is None or conversion.gender is None:
        last = f": {converted.reason}" if converted is not None and converted.reason else ""
        return "", f'whether "her" is his or him stays undecided{last}'
    # A template holds no capitals: "At 5 p.m. she left" would come back as "She left".
    if fill(conversion.template, conversion.gender) != sentence.text:
        return "", "a template can't keep the capitals of its pronouns"
    return conversion.template, ""


#: Times a conversion is asked for; the first at temperature 0.
CONVERSION_ROUNDS = 3
_TOKENS_A_CHARACTER, _TOKENS_OF_TALK = 1, 64

#: Given the original and the converted sentence: what is wrong with the latter, or ``None``.
Problem = Callable[[str, str], str | None]


@dataclass(frozen=True)
class Converted:
    """How far a sentence is: ``request`` is to be asked, or there is a ``sentence``, or neither.

    With neither, ``reason`` says what was wrong with the last answer.
    """

    request: Request | None
    sentence: str | None
    reason: str = ""


def conversion(
    sentence: str,
    *,
    word: str,
    to: Pronoun,
    model: ChatModel,
    prompts: Prompts,
    problem: Problem,
    replies: Mapping[str, Reply],
) -> Converted:
    """What is to be asked next to change a sentence's pronouns to those of ``to``.

    An answer that ``problem`` finds fault with, or that holds no sentence, is asked for again.
    """
    reason = ""
    for round in range(1, CONVERSION_ROUNDS + 1):
        request = model.request(
            "convert",
            fill_prompt(prompts.convert, sentence=sentence, pronoun=to),
            word=word,
            pronoun=to,
            round=round,
            temperature=0 if round == 1 else 0.7,
            max_tokens=len(sentence) * _TOKENS_A_CHARACTER + _TOKENS_OF_TALK,
        )
        reply = replies.get(request.request_id)
        if reply is None:
            return Converted(request, None)
        found = sentences(reply.text)
        if not found:
            reason = "the reply holds no sentence"
        elif fault := problem(sentence, found[0]):
            reason = fault
        else:
            return Converted(None, found[0])
    return Converted(None, None, reason)
