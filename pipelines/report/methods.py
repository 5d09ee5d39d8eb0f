"""What was done, with what, and what it cannot tell; models, runs and versions."""

from __future__ import annotations

import json
from collections.abc import Sequence

from plumbline.pipelines.report.facts import Facts
from plumbline.pipelines.report.model import Missing, Section, Table, count, number, shown, text

_DEFINITIONS = (
    "PMI(w, g) = ln( p(w, g) / (p(w) p(g)) ), in nats; p(w) is the word's share of all kept tokens "
    "and p(w, g) the pair's share of all co-occurrences, both before anything is filtered.",
    "delta(w) = PMI(w, female) - PMI(w, male), where both were counted at least once; a list of "
    "word pairs gives the weighted mean over the pairs that are defined.",
    "MaxPMI of a pair is the delta of largest magnitude among the words of its template, without "
    "the placeholders; undefined when no word has a delta.",
    "log p(sentence) sums log p(token | BOS, earlier tokens) over the sentence's tokens; BOS is "
    "given and not scored, no end token is added. The log ratio is log p(female) - log p(male).",
    "Standard deviations of shares are sqrt(p (1 - p) / n) with the subset's own n. Intervals are "
    "95%: Wilson for US, Bonett and Price's adjusted Wald for PD, Student's t for the mean area "
    "AuFC and for slopes, Newcombe's hybrid score for gaps (the kept pairs are part of all, so the "
    "interval is that of kept against left out, scaled), Fisher's z for correlations, with Bonett "
    "and Wright's standard error for ranks.",
    "Only pairs that their source does not call unnatural count.",
    "The measures follow UnStereoEval (ICLR 2024), the benchmarks WinoBias, Winogender and USE, "
    "each as released.",
)


_BRIEF = (
    "Each pair is one sentence with female and with male pronouns; a model's log probabilities of "
    "the two are set against each other. Words of a corpus lean by how much more closely they keep "
    "company with she than with he (delta, in nats). Intervals are 95%.",
    "Under every table and plot stands its query, which `plumbline sql` runs as it is shown.",
)
_LIMITS = (
    "Intervals tell how far a figure would move with other pairs or words like these; they know "
    "nothing of errors in the text, the benchmark or the model's training.",
    "The measures are about she and he in English sentences. They say nothing of other genders or "
    "languages, nor of what a model does in use.",
    "That a preference goes with the lean of a text does not show that this text caused it, unless "
    "the model was trained on this text alone.",
)
#: Fewer pairs than this make the limits name the benchmark.
_FEW = 100
#: Names told of models, benchmarks or corpora; the tables hold all.
_NAMED = 6


_IDENTITY = (
    *("model", "model_key", "revision", "backend", "dtype", "quantisation", "adapter"),
    *("text_form", "bos_policy"),
)


def methods(facts: Facts) -> Section:
    """In brief how it was done, and with which options; the definitions folded."""
    epsilons = sorted({r["epsilon_nats"] for r in facts.metric if r["epsilon_nats"] is not None})
    etas = sorted({r["eta_nats"] for r in facts.metric if r["eta_nats"] is not None})
    options = []
    if epsilons:
        options.append(f"epsilon = {', '.join(shown(e, 4) for e in epsilons)} nats.")
    if etas:
        options.append(f"eta = {', '.join(f'{e:g}' for e in etas)} nats, applied to the query.")
    intro = [*_BRIEF, *([f"Here: {' '.join(options)}"] if options else [])]
    return Section("methods", "Methods", intro, more=_DEFINITIONS)


def data(facts: Facts) -> Section | Missing:
    """What the figures are made from: models, benchmarks and corpora with their sizes."""
    title, pairs = "Data", _pairs(facts)
    told = []
    if facts.model:
        names = _named([str(r["model"]) for r in facts.model])
        told.append(f"Models scored ({len(facts.model):,}): {names}.")
    if pairs:
        sizes = _named([f"{name} ({n:,} pairs)" for name, n in pairs.items()])
        told.append(f"Benchmarks ({len(pairs):,}): {sizes}.")
    if facts.ledger:
        sizes = _named(
            [f"{r['corpus']} ({count(r['n_tokens']).text} tokens)" for r in facts.ledger]
        )
        told.append(f"Corpora ({len(facts.ledger):,}): {sizes}.")
    if not told:
        return Missing(title, "plumbline pipeline")
    told.append("The sections on models, text and runs, at the end, tell how each was made.")
    return Section("data", title, told)


def limits(facts: Facts) -> Section:
    """What the figures cannot tell, of this warehouse and at all."""
    told = []
    n = sum(r["ci_low"] is not None and r["ci_high"] is not None for r in facts.metric)
    if n:
        told.append(
            f"The metrics come with {n:,} intervals, none of them widened for their number: by "
            "chance alone about one in twenty misses its true value."
        )
    few = [f"{name} ({n:,})" for name, n in _pairs(facts).items() if n < _FEW]
    if few:
        told.append(f"Benchmarks of fewer than {_FEW} pairs say little: {_named(few)}.")
    if facts.failed_shard:
        told.append(f"Shards that failed and are in no count: {len(facts.failed_shard):,}.")
    return Section("limits", "Limits", [*told, *_LIMITS])


def _pairs(facts: Facts) -> dict[str, int]:
    """The most pairs that any model was scored on, by benchmark."""
    found: dict[str, int] = {}
    for row in facts.score:
        found[row["benchmark"]] = max(found.get(row["benchmark"], 0), row["n_pairs"])
    return found


def _named(names: Sequence[str]) -> str:
    more = f" and {len(names) - _NAMED:,} more" if len(names) > _NAMED else ""
    return ", ".join(names[:_NAMED]) + more


def models(facts: Facts) -> Section | Missing:
    """The scoring identities."""
    if not facts.model:
        return Missing("Models", "plumbline score --model ID_OR_PATH --benchmark NAME")
    rows = [
        [text(r[c]) for c in _IDENTITY]
        + [count(r["n_parameters"]), text(r["trained_on"]), text(r["seed"]), count(r["n_tokens"])]
        + [number(r["loss_start_nats"]), number(r["loss_end_nats"])]
        for r in facts.model
    ]
    headings = ["model", "key", "revision", "backend", "dtype", "quantisation", "adapter"]
    headings += ["text form", "BOS", "parameters", "trained on", "seed"]
    headings += ["tokens seen", "loss at start", "loss at end"]
    table = Table("Models scored", headings, rows, sql=facts.sql("model"))
    return Section("models", "Models", tables=[table])


def runs(facts: Facts) -> Section | Missing:
    """What wrote to the warehouse, and with which versions."""
    if not facts.run:
        return Missing("Runs", "plumbline pipeline")
    rows = [
        [text(r[c]) for c in ("run_id", "command", "status")]
        + [text(f"{r['started_at']:%Y-%m-%d %H:%M:%S}"), number(r["seconds"], 1)]
        + [text((r["git_commit"] or "–")[:12]), text(r["error"])]
        for r in facts.run
    ]
    headings = ["run", "step", "status", "started (UTC)", "seconds", "commit", "error"]
    packages = json.loads(facts.run[-1]["packages"])
    versions = ", ".join(f"{name} {version}" for name, version in packages.items())
    metric_runs = sorted({r["run_id"] for r in facts.metric})
    intro = [f"Versions of the last run: {versions}."]
    if metric_runs:
        intro.append(f"Metrics on this page are of run {', '.join(metric_runs)}.")
    table = Table(f"Runs ({len(rows)})", headings, rows, len(rows) > 15, facts.sql("run"))
    return Section("runs", "Runs and versions", intro, tables=[table])
