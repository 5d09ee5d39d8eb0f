"""Makes rows of ``benchmark_pair``, or rejects, from written sentences. Pure."""

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
    """Rows of ``benchmark_pair`` without ``benchmark`` and of ``reject`` without ``run_id``.

    Each sentence gives one row of either kind.
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
    """Sentences with a "her" that the rules can't decide; a model has to convert them.

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
    """Pair sentences in order; ``conversions`` has the model's results for undecided sentences.

    >>> both = paired("demo", [WrittenSentence("Her tea was hot.", "tea", "she", "r", 1),
    ...                        WrittenSentence("The tea was hers.", "tea", "she", "r", 2)], {})
    >>> [row["sentence_b"] for row in both.pairs], [row["reason"] for row in both.rejects]
    (['His tea was hot.'], ['holds "hers", which no placeholder stands for'])
    """
    parsed, subject = Parsed(name), {"stage": "generate", "subject": f"{name}/pair"}
    word_of: dict[str, str] = {}
    for sentence in sentences:
        template, problem = _template(sentence, conversions.get(sentence))
        if not problem and template in word_of:
            problem = f"repeats a sentence of the word {word_of[template]}"
        if problem:
            parsed.reject(sentence.request_id, sentence.position, problem, sentence.text)
            continue
        word_of[template] = sentence.word
        parsed.add(
            pair_id=pair_id(sentence.word, template),
            template=template,
            word=sentence.word,
            source_file=sentence.request_id,
            source_row=sentence.position,
        )
    return Paired(tuple(parsed.pairs), tuple(row | subject for row in parsed.rejects))


def _template(sentence: WrittenSentence, converted: Converted | None) -> tuple[str, str]:
    """The template of a sentence and ``""``, or ``""`` and the reason why it has none."""
    by_rules: Conversion = to_template(sentence.text)
    if by_rules.undecided and converted and converted.sentence is not None:
        answer = answered(by_rules, converted.sentence)
        by_rules = answer if isinstance(answer, Conversion) else by_rules
    if by_rules.problem:
        return "", by_rules.problem
    if by_rules.template is None or by_rules.gender is None:
        last = f": {converted.reason}" if converted and converted.reason else ""
        return "", f'whether "her" is his or him stays undecided{last}'
    # A template holds no capitals: "At 5 p.m. she left" would come back as "She left".
    if fill(by_rules.template, by_rules.gender) != sentence.text:
        return "", "a template can't keep the capitals of its pronouns"
    return by_rules.template, ""


#: Most requests for one conversion; the first is at temperature 0.
CONVERSION_ROUNDS = 3
_TOKENS_A_CHARACTER, _TOKENS_OF_TALK = 1, 64


@dataclass(frozen=True)
class Converted:
    """State of a conversion: it is done when there are no ``requests``.

    If it is done without a ``sentence``, ``reason`` is the problem with the last answer.
    """

    requests: tuple[Request, ...]
    sentence: str | None = None
    reason: str = ""


def conversion(
    sentence: WrittenSentence, model: ChatModel, prompts: Wordings, replies: Mapping[str, Reply]
) -> Converted:
    """The next request to change a sentence's pronouns to those of *he*, or the result.

    If an answer changes anything else, or holds no sentence, the request is sent again.
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
