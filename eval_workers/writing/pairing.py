"""Make pairs from sentences, by rules or else with a model. Also let the model judge pairs."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

from plumbline.eval_workers.chat.replies import sentences, verdict
from plumbline.eval_workers.chat.requests import Pronoun
from plumbline.eval_workers.chat.session import Ask
from plumbline.eval_workers.pairs.benchmarks import Parsed
from plumbline.eval_workers.pairs.pronouns.conversion import Conversion, to_template
from plumbline.eval_workers.pairs.pronouns.pronoun_templates import fill
from plumbline.eval_workers.writing.build_spec import BuildSpec
from plumbline.eval_workers.writing.written_sentences import WrittenSentence

#: The maximum number of requests for one conversion, and for judging one sentence.
CONVERSION_ROUNDS, JUDGE_ROUNDS = 3, 2


#: A sentence's template and ``""``, or ``""`` and the reason why there is no template.
Template: TypeAlias = tuple[str, str]


async def template_of(sentence: WrittenSentence, spec: BuildSpec, ask: Ask) -> Template:
    """Return the template of a sentence. ``Build.run`` supplies ``ask``.

    The model is asked only if rules can't decide whether a "her" means "his" or "him".
    """
    found, last = to_template(sentence.text), ""
    if found.undecided:
        found, last = await _decided(found, sentence.word, spec, ask)
    if found.problem:
        return "", found.problem
    if found.template is None or found.gender is None:
        why = f": {last}" if last else ""
        return "", f'whether "her" is his or him stays undecided{why}'
    # Filling a template may add capitals: "At 5 p.m. she left" becomes "At 5 p.m. She left".
    if fill(found.template, found.gender) != sentence.text:
        return "", "a template can't keep the capitals of its pronouns"
    return found.template, ""


async def _decided(
    found: Conversion, word: str, spec: BuildSpec, ask: Ask
) -> tuple[Conversion, str]:
    """Ask the model for the sentence with *he*, up to ``CONVERSION_ROUNDS`` times.

    Return the conversion and ``""``, or ``found`` and a problem if no answer is usable. An answer
    is unusable if it changes words other than pronouns, or has no sentence.
    """
    problem = ""
    for round in range(1, CONVERSION_ROUNDS + 1):
        reply = await ask(spec.request("convert", word, "he", round, sentence=found.sentence))
        texts = sentences(reply.text)
        if not texts:
            problem = "the reply holds no sentence"
        elif (decided := found.decided_by(texts[0])) is None:
            problem = "the reply changes more than pronouns"
        else:
            return decided, ""
    return found, problem


def pair_id(word: str, template: str) -> str:
    """Return a pair's id, which consists of its word and a hash of its template.

    >>> pair_id("tea", "{pronoun} drank tea.")
    'tea-d6214149ed'
    """
    return f"{word}-{hashlib.sha256(template.encode()).hexdigest()[:10]}"


def paired(
    name: str, sentences: Sequence[WrittenSentence], templates: Sequence[Template]
) -> Parsed:
    """Make a pair from each sentence's template, or a reject if the sentence has a problem.

    >>> both = paired("demo", [WrittenSentence("Her tea was hot.", "tea", "she", "r", 1),
    ...                        WrittenSentence("The tea was hers.", "tea", "she", "r", 2)],
    ...               [("{pronoun1} tea was hot.", ""), ("", 'holds "hers"')])
    >>> [row["sentence_b"] for row in both.pairs], [row["reason"] for row in both.rejects]
    (['His tea was hot.'], ['holds "hers"'])
    """
    parsed = Parsed(name)
    word_of: dict[str, str] = {}
    for sentence, (template, problem) in zip(sentences, templates, strict=True):
        source: dict[str, Any]
        source = {"source_file": sentence.request_id, "source_row": sentence.position}
        if template in word_of:
            problem = f"repeats a sentence of the word {word_of[template]}"
        if problem:
            parsed.reject(source, problem, sentence.text)
            continue
        word_of[template] = sentence.word
        same = pair_id(sentence.word, template)
        parsed.add(pair_id=same, template=template, word=sentence.word, **source)
    return parsed


async def unnatural(pair: Mapping[str, object], spec: BuildSpec, ask: Ask) -> str:
    """Return why a pair isn't natural, or ``""`` if the model finds both sentences likely.

    ``pair`` is a row of ``benchmark_pair``. ``Build.run`` supplies ``ask``.
    """
    sides: tuple[tuple[Pronoun, object], ...]
    sides = ("she", pair["sentence_a"]), ("he", pair["sentence_b"])
    verdicts = await asyncio.gather(
        *(_is_likely(str(pair["word"]), side, str(text), spec, ask) for side, text in sides)
    )
    likely = dict(zip(("she", "he"), verdicts, strict=True))
    problems = {False: "the {} side is unlikely", None: "the answers about the {} side are unclear"}
    for answer, problem in problems.items():
        for side, is_likely in likely.items():
            if is_likely is answer:
                return problem.format(side)
    return ""


async def _is_likely(
    word: str, pronoun: Pronoun, sentence: str, spec: BuildSpec, ask: Ask
) -> bool | None:
    """Ask up to twice whether a sentence is likely. Return ``None`` if no answer is clear."""
    for round in range(1, JUDGE_ROUNDS + 1):
        reply = await ask(spec.request("judge", word, pronoun, round, sentence=sentence))
        if (answer := verdict(reply.text)) is not None:
            return answer
    return None
