"""Words of queries in the documents of a text, and the pairs of a contrast near them."""

from __future__ import annotations

from collections.abc import Iterable

from plumbline.jobs.association.associations import contrasts_of
from plumbline.jobs.association.target_lists import targets_of
from plumbline.jobs.corpus_lookup import corpus_contrast, corpus_lists
from plumbline.jobs.evidence.sightings import ALL_SOURCES, Inquiry, Sightings, look
from plumbline.pipelines.attribution.contract import Progress, Subject
from plumbline.warehouse.errors import UsageProblem
from plumbline.warehouse.wordlists import WordPair


def pairs_of(subject: Subject) -> tuple[WordPair, ...]:
    """The pairs of the contrast. Raises ``UsageProblem`` for one that the corpus lacks."""
    corpus, store = subject.text.corpus, subject.store
    by_name = contrasts_of(store, subject.text.evidence.corpus)
    contrast = corpus_contrast(store, corpus, subject.contrast)
    if contrast not in by_name:
        problem, fix = f"is not one of corpus {corpus}", f"one of {', '.join(by_name)}"
        raise UsageProblem(f"contrast {subject.contrast!r}", problem, fix)
    return by_name[contrast]


def inquiry(subject: Subject, words: Iterable[str]) -> Inquiry:
    """The question of words near the contrast; the text may have kept a word or not."""
    evidence, pairs = subject.text.evidence, pairs_of(subject)
    counts = subject.store.read("word_count", corpus=subject.text.corpus)
    return Inquiry(
        tuple(dict.fromkeys(words)),
        tuple(dict.fromkeys(pair.a for pair in pairs)),
        tuple(dict.fromkeys(pair.b for pair in pairs)),
        targets_of(corpus_lists(subject.store, evidence.corpus)),
        evidence.options.rule,
        evidence.options.window,
        counts["word"].combine_chunks(),
    )


def sightings(subject: Subject, words: Iterable[str], progress: Progress) -> Sightings:
    """Occurrences of words in the documents."""
    question = inquiry(subject, words)
    return look(subject.text.evidence, question, progress=progress, most_sources=ALL_SOURCES)
