"""The closing sections: definitions, models, runs and versions."""

from __future__ import annotations

import json

from pipelines.report.facts import Facts
from pipelines.report.model import Missing, Section, Table, count, number, shown, text

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
    "Only pairs that their source does not call unnatural count. Intervals tell how far the figure "
    "would move with other pairs or words like these; they know nothing of errors in the text, "
    "the benchmark or the model's training, nor of the number of comparisons on this page.",
    "The measures follow UnStereoEval (ICLR 2024), the benchmarks WinoBias, Winogender and USE, "
    "each as released.",
)


_IDENTITY = (
    *("model", "model_key", "revision", "backend", "dtype", "quantisation", "adapter"),
    *("text_form", "bos_policy"),
)


def methods(facts: Facts) -> Section:
    """Definitions, and the options that these figures were made with."""
    epsilons = sorted({r["epsilon_nats"] for r in facts.metric if r["epsilon_nats"] is not None})
    etas = sorted({r["eta_nats"] for r in facts.metric if r["eta_nats"] is not None})
    options = []
    if epsilons:
        options.append(f"epsilon = {', '.join(shown(e, 4) for e in epsilons)} nats.")
    if etas:
        options.append(f"eta = {', '.join(f'{e:g}' for e in etas)} nats, applied to the query.")
    intro = [*_DEFINITIONS, *([f"Here: {' '.join(options)}"] if options else [])]
    return Section("methods", "Methods", intro)


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
