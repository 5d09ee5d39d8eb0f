"""The appendix's beginning: methods, data, limits."""

from __future__ import annotations

from collections.abc import Iterator

from plumbline.pipelines.report.facts import Facts
from plumbline.pipelines.report.model import Missing, Section, count, counted, first_of, shown

PLACE = 0
NAMES = ("methods", "data", "limits")
_DEFINITIONS = (
    "PMI(w, g) = ln( p(w, g) / (p(w) p(g)) ), in nats; p(w) is the word's share of all kept tokens "
    "and p(w, g) the pair's share of all co-occurrences, both before anything is filtered.",
    "delta(w) = PMI(w, a) - PMI(w, b) of a contrast a/b, where both were counted at least once; a "
    "list of word pairs gives the weighted mean over the pairs that are defined.",
    "MaxPMI of a pair is the delta of largest magnitude among the words of its template, without "
    "the placeholders; undefined when no word has a delta.",
    "log p(sentence) sums log p(token | BOS, earlier tokens) over the sentence's tokens; BOS is "
    "given and not scored, no end token is added. The log ratio is log p(a) - log p(b), a "
    "being the first of a pair's two groups.",
    "Intervals are 95%, over clusters of pairs that are alike, of slopes and correlations over "
    "words: Wilson's for US, even share and (on 0 to 6) AuFC; Bonett and Price's adjusted Wald "
    "for PD; Student's t for gaps and slopes; Fisher's z for correlations, also of ranks; "
    "Scheffé's for divergence.",
    "Pairs that their source calls unnatural do not count.",
    "US, PD and AuFC follow UnStereoEval (ICLR 2024). The templates of WinoBias, Winogender and "
    "USE are as released, those of other benchmarks as imported.",
)
_BRIEF = (
    "Each pair is one sentence in two versions, each about its group; a model's log probabilities "
    "of the two are compared. The lean of a word in a corpus is how much more it co-occurs with "
    "she than with he (delta, in nats). Intervals are 95%, over words, frames or occupations like "
    "these; for the list itself a figure is exact.",
    "Below every table and plot is its query, which `plumbline sql` runs unchanged.",
)
_LIMITS = (
    "Intervals tell how far a figure would move with other words, frames or occupations like "
    "these. For the list itself the figure is exact. Intervals do not cover errors in the text, "
    "the benchmark or the model's training.",
    "The measures are about the groups of these pairs, in these sentences. They say nothing of "
    "other groups or languages, nor of what a model does in use.",
    "That a preference goes with the lean of a text does not show that this text caused it, unless "
    "the model was trained on this text alone.",
)
#: The section on limits names benchmarks of fewer pairs than this.
_FEW = 100
#: Most models, benchmarks or corpora that are named in a sentence.
_NAMED = 6


def sections(facts: Facts) -> Iterator[Section | Missing]:
    """Methods, data and limits."""
    yield _methods(facts)
    yield _data(facts)
    yield _limits(facts)


def _methods(facts: Facts) -> Section:
    epsilons, etas = (
        sorted({r[column] for r in facts.rows("metric") if r[column] is not None})
        for column in ("epsilon_nats", "eta_nats")
    )
    options = "Here:"
    if epsilons:
        options += f" epsilon = {', '.join(shown(e, 4) for e in epsilons)} nats."
    if etas:
        options += f" eta = {', '.join(f'{e:g}' for e in etas)} nats, applied to the query."
    intro = [*_BRIEF, options] if epsilons or etas else _BRIEF
    return Section("methods", "Methods", intro, more=_DEFINITIONS)


def _data(facts: Facts) -> Section | Missing:
    models, corpora = facts.rows("model"), facts.rows("ledger")
    names = {
        "Models scored": [str(r["model"]) for r in models],
        "Benchmarks": [f"{name} ({counted(n, 'pair')})" for name, n in _pairs(facts).items()],
        "Corpora": [f"{r['corpus']} ({count(r['n_tokens']).text} tokens)" for r in corpora],
    }
    intro = [
        f"{what} ({len(items):,}): {first_of(items, _NAMED)}."
        for what, items in names.items()
        if items
    ]
    if not intro:
        return Missing("Data", "plumbline pipeline")
    intro.append("The sections on models, text and runs, at the end, tell how each was made.")
    return Section("data", "Data", intro)


def _limits(facts: Facts) -> Section:
    intro = []
    n = sum(None not in (r["value_low"], r["value_high"]) for r in facts.rows("metric"))
    if n:
        intro.append(
            f"The metrics come with {n:,} intervals, none of them widened for their number: by "
            "chance alone about one in twenty misses its true value."
        )
    few = [f"{name} ({n:,})" for name, n in _pairs(facts).items() if n < _FEW]
    if few:
        intro.append(f"Benchmarks of fewer than {_FEW} pairs say little: {first_of(few, _NAMED)}.")
    if failed := facts.rows("failed_shard"):
        intro.append(f"Shards that failed and are in no count: {len(failed):,}.")
    return Section("limits", "Limits", [*intro, *_LIMITS])


def _pairs(facts: Facts) -> dict[str, int]:
    """Benchmark -> the largest number of its pairs that a model was scored on."""
    scores = facts.rows("score").groups("benchmark")
    return {group[0]["benchmark"]: max(row["n_pairs"] for row in group) for group in scores}
