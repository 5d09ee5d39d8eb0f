"""The steps from seed words to a published benchmark; ``benchmark_pair`` is written last.

A repeated step takes the replies that are in the ledger, and requests only the missing ones.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from plumbline.eval_workers.chat.budget import expected_tokens
from plumbline.eval_workers.chat.session import Build
from plumbline.eval_workers.pairs.benchmarks import Parsed, Row, discover, replace_pairs
from plumbline.eval_workers.pairs.benchmarks.own.recipe import RECIPES
from plumbline.eval_workers.pairs.sharing.export import Constraint, Exported, NothingKept, export
from plumbline.eval_workers.writing.build_spec import BuildSpec
from plumbline.eval_workers.writing.offline import SOURCE, write_offline
from plumbline.eval_workers.writing.pairing import (
    CONVERSION_ROUNDS,
    JUDGE_ROUNDS,
    paired,
    template_of,
    unnatural,
)
from plumbline.eval_workers.writing.written_sentences import PRONOUNS, Written, write
from plumbline.warehouse.errors import BadInput, UsageProblem, disk_problems
from plumbline.warehouse.input.input_rows import rejected
from plumbline.warehouse.options import check_name
from plumbline.warehouse.query.connection import rows_of
from plumbline.warehouse.run_records import recorded
from plumbline.warehouse.storage.store import Store

#: Steps that leave out sentences or pairs; each step replaces only its own rejects.
_STEPS = ("write", "pair", "judge")
_SAMPLE = """
SELECT word FROM seed_word WHERE corpus = $corpus AND contrast = $contrast AND seed = $seed
ORDER BY position
"""


@dataclass(frozen=True)
class Forecast:
    """The requests and tokens of a build if all sentences are usable at the first attempt.

    Revisions, repeats, conversions and failed attempts come on top; ``n_requests_most`` is an upper
    bound that includes all of these except failed attempts. A sentence of w words counts as 1.4 w
    tokens plus 4 for its number, and a verdict as 8 tokens.
    """

    n_requests: int
    n_requests_most: int
    n_input_tokens: int
    n_output_tokens: int


def forecast(words: Sequence[str], spec: BuildSpec) -> Forecast:
    """Estimate what a whole build for these seed words takes.

    >>> forecast(["tea"], BuildSpec(model="m")).n_requests  # 2 lists, 10 pairs of 2 verdicts
    22
    """
    n = spec.n_sentences
    lists = [spec.request("generate", w, p, 1, n=n) for w in words for p in PRONOUNS]
    n_sentences = len(lists) * n
    n_verdicts = 2 * n_sentences if spec.judge else 0
    verdict = spec.request("judge", "garden", "she", 1, sentence="garden " * spec.max_words)
    n_most = len(lists) * spec.generate_rounds * (1 + n * spec.n_revisions)
    # Only sentences with "she", one of a word's two lists, can have a "her" to convert.
    n_most += n_sentences // len(PRONOUNS) * CONVERSION_ROUNDS + JUDGE_ROUNDS * n_verdicts
    n_input = sum(expected_tokens(r.prompt) for r in lists)
    n_input += n_verdicts * expected_tokens(verdict.prompt)
    n_output = math.ceil(n_sentences * (1.4 * spec.max_words + 4) + n_verdicts * 8)
    return Forecast(len(lists) + n_verdicts, n_most, n_input, n_output)


def publish_rejects(build: Build, step: str, rejects: Sequence[Mapping[str, object]]) -> None:
    """Replace the rows of ``reject`` that come from a build step."""
    partition = {"stage": "generate", "subject": f"{build.benchmark}/{step}"}
    rows = [{**row, **partition, "run_id": build.run_id} for row in rejects]
    with disk_problems(build.store.root):
        build.store.replace("reject", rows, partition, build.run_id)


def write_sentences(build: Build, words: Sequence[str], spec: BuildSpec) -> list[Written]:
    """Have sentences written for each seed word; return them, and write rejects to ``reject``.

    Raises what ``Build.run`` raises.
    """
    plans = [partial(write, word, spec) for word in dict.fromkeys(words)]
    written = build.run(plans, "words")
    unbalanced = [one.word for one in written if not one.balances()]
    assert not unbalanced, f"sentences are lost or counted twice: {unbalanced}"
    rejects = [
        rejected({"source_file": one.request_id, "source_row": one.position}, reason, one.text)
        for of_word in written
        for one, reason in of_word.rejected.items()
    ]
    publish_rejects(build, "write", rejects)
    return written


def pair_sentences(build: Build, written: Sequence[Written], spec: BuildSpec) -> Parsed:
    """Make pairs of the kept sentences, in order; sentences that give none go to ``reject``.

    If the rules can't decide what a "her" stands for, the model converts the sentence. Raises what
    ``Build.run`` raises.
    """
    sentences = [sentence for of_word in written for sentence in of_word.kept]
    plans = [partial(template_of, sentence, spec) for sentence in sentences]
    done = paired(build.benchmark, sentences, build.run(plans, "sentences"))
    assert len(sentences) == len(done.pairs) + len(done.rejects), "sentences are lost"
    publish_rejects(build, "pair", done.rejects)
    return done


def judge_pairs(build: Build, pairs: Sequence[Row], spec: BuildSpec) -> list[Row]:
    """Return the pairs with column ``is_natural``: true if the model finds both sides likely.

    Unnatural pairs stay in the result, since metrics leave them out by that column; each also gets
    a row in ``reject`` that states the reason. Raises what ``Build.run`` raises.
    """
    reasons = build.run([partial(unnatural, pair, spec) for pair in pairs], "pairs")
    judged = list(enumerate(zip(pairs, reasons, strict=True), 1))
    rejects = [
        rejected({"source_file": pair["pair_id"], "source_row": i}, why, str(pair["sentence_a"]))
        for i, (pair, why) in judged
        if why
    ]
    publish_rejects(build, "judge", rejects)
    return [pair | {"is_natural": not why} for _, (pair, why) in judged]


def check_benchmark_name(name: str) -> None:
    """Raise ``UsageProblem`` for a name that a user's own benchmark can't have."""
    check_name(f"benchmark {name!r}", name)
    if name in discover() or name in RECIPES.names():
        problem = "is the name of a benchmark to import"
        raise UsageProblem(f"benchmark {name!r}", problem, "take another name")


def seed_words(store: Store | None, spec: BuildSpec) -> tuple[str, ...]:
    """Return the first ``spec.n_words`` words of ``spec.words``, or else of the corpus's sample.

    Raises ``UsageProblem`` if there is no such sample, or if it has too few words.

    >>> seed_words(None, BuildSpec(words=("tea", "clock", "tea")))
    ('tea', 'clock')
    """
    if spec.words:
        return tuple(dict.fromkeys(spec.words))[: spec.n_words]
    if not spec.corpus or store is None:
        fix = "give --corpus NAME, or words = [...] in the configuration"
        raise UsageProblem("seed words", "neither a corpus nor words are given", fix)
    sample = {"corpus": spec.corpus, "contrast": spec.contrast, "seed": spec.seed}
    rows = rows_of(store.root, _SAMPLE, sample)
    if len(rows) < (spec.n_words or 1):
        problem = f"its sample for {spec.contrast}, seed {spec.seed} holds {len(rows)} words"
        n = f"--n {spec.n_words} " if spec.n_words else ""
        fix = f"plumbline corpus words --corpus {spec.corpus} {n}--seed {spec.seed}"
        fix += f" --contrast {spec.contrast}" if spec.contrast != BuildSpec.contrast else ""
        raise UsageProblem(f"seed words of corpus {spec.corpus!r}", problem, fix)
    return tuple(row["word"] for row in rows[: spec.n_words])


def publish(build: Build, pairs: Sequence[Row], steps: Sequence[str]) -> None:
    """Replace the benchmark's pairs.

    ``steps`` are the steps of this build; rejects from other steps belong to an earlier build and
    are deleted. Raises ``BadInput`` if there is no pair; the benchmark then stays as it was.
    """
    store, name, run_id = build.store, build.benchmark, build.run_id
    if not pairs:
        fix = f"see table reject, subject {name}/write and {name}/pair"
        raise BadInput(f"benchmark {name}", "no sentence became a pair", fix)
    rows = [{"benchmark": name, **pair} for pair in pairs]
    with disk_problems(store.root), store.transaction(run_id, f"benchmark {name}"):
        replace_pairs(store, name, rows, run_id)
        for step in set(_STEPS) - set(steps):
            publish_rejects(build, step, [])


def count(
    words: Sequence[str], written: Sequence[Written], n_unpaired: int, pairs: Sequence[Row]
) -> dict[str, int | None]:
    """Count sentences: ``n_in`` = kept + rejected + revised, kept = pairs + unpaired.

    For the offline writer, only words and pairs are counted. ``n_natural`` is ``None`` if there are
    no verdicts.
    """
    verdicts = [pair["is_natural"] for pair in pairs if pair.get("is_natural") is not None]
    return {
        "n_words": len(words),
        "n_in": sum(p.n_in for p in written),
        "n_kept": sum(len(p.kept) for p in written),
        "n_rejected": sum(len(p.rejected) for p in written),
        "n_revised": sum(p.n_revised for p in written),
        "n_unpaired": n_unpaired,
        "n_pairs": len(pairs),
        "n_natural": sum(map(bool, verdicts)) if verdicts else None,
    }


def make_pairs(
    stage: Callable[..., Any], build: Build, words: Sequence[str], spec: BuildSpec, *, offline: bool
) -> tuple[list[Row], dict[str, int | None], list[str]]:
    """Make pairs around words; return the pairs, counts and steps. ``stage`` runs each step."""
    if offline:
        rows = stage("write offline", write_offline, build.store, build.benchmark, words, spec)
        return rows, count(words, [], 0, rows), []
    with recorded(build.store, "benchmark sentences", {"prompts_hash": spec.wordings.hash}):
        written = stage("write", write_sentences, build, words, spec)
        done = stage("pair", pair_sentences, build, written, spec)
        pairs, steps = done.pairs, ["write", "pair"]
        if spec.judge:
            pairs = stage("judge", judge_pairs, build, pairs, spec)
            steps.append("judge")
        return pairs, count(words, written, len(done.rejects), pairs), steps


def write_folder(
    build: Build, made: Mapping[str, object], out: Path, within: Constraint | None
) -> tuple[Exported, list[str]]:
    """Export the pairs within the limit; if there are none, export all and return a warning."""
    store, name = build.store, build.benchmark
    try:
        return export(store, name, out, made=made, constraint=within), []
    except NothingKept as e:
        assert within is not None, "without a limit all pairs are kept"
        no_limit = replace(within, eta_nats=None)
        line = f"{name}: {e.args[1]}, so all pairs were exported"
        return export(store, name, out, made=made, constraint=no_limit), [line]


def facts(spec: BuildSpec, counts: Mapping[str, int | None], *, offline: bool) -> dict[str, object]:
    """Return facts about how the pairs were made, for the card."""
    sample = f"the sample of {spec.corpus} ({spec.contrast}, seed {spec.seed})"
    words = "given" if spec.words else f"the first {counts['n_words']:,} of {sample}"
    if offline:
        by = f"{SOURCE}: fixed frames of Plumbline's own, no model; nobody judged them"
        return {"Seed words": words, "Written by": by, "Seed of the frames": spec.seed}
    longer = "longer sentences were kept, as in UnStereoEval"
    if spec.reject_longer:
        longer = "longer sentences were rejected, which UnStereoEval did not do"
    fates = {"n_in": "read", "n_kept": "kept", "n_rejected": "rejected", "n_revised": "revised"}
    return {
        "Seed words": words,
        "Written by": f"{spec.model}, at temperature {spec.temperature:g}",
        "Wordings (hash)": spec.wordings.hash,
        "Words of a sentence": f"at most {spec.max_words} asked for; {longer}",
        "Times a sentence was sent back, at most": spec.n_revisions,
        "Sentences": ", ".join(f"{counts[name]:,} {fate}" for name, fate in fates.items()),
        "Judged by": spec.model if spec.judge else "nobody",
    }
