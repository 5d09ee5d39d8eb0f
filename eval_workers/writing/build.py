"""Make a benchmark from seed words, step by step. The last step writes ``benchmark_pair``.

If a step is run again, it reads the replies in the ledger and only requests the missing replies.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from plumbline.eval_workers.chat.requests import expected_tokens
from plumbline.eval_workers.chat.session import Build
from plumbline.eval_workers.pairs.benchmarks import (
    Parsed,
    Row,
    discover,
    replace_facts,
    replace_pairs,
)
from plumbline.eval_workers.pairs.recipe import RECIPES
from plumbline.eval_workers.writing.build_spec import BuildSpec
from plumbline.eval_workers.writing.offline import SOURCE, offline_pairs
from plumbline.eval_workers.writing.pairing import paired, template_of, unnatural
from plumbline.eval_workers.writing.written_sentences import PRONOUNS, Written, write
from plumbline.warehouse.errors import BadInput, UsageProblem, disk_problems
from plumbline.warehouse.input.input_rows import reasons, rejected
from plumbline.warehouse.options import check_name
from plumbline.warehouse.query.connection import rows_of
from plumbline.warehouse.run_records import recorded
from plumbline.warehouse.storage.store import Store

#: Steps that may reject sentences or pairs.
_STEPS = ("write", "pair", "judge")
_SAMPLE = """
SELECT word FROM seed_word WHERE corpus = $corpus AND contrast = $contrast AND seed = $seed
ORDER BY position
"""


def forecast(words: Sequence[str], spec: BuildSpec) -> dict[str, int]:
    """Estimate how many requests and tokens a build needs if every first attempt succeeds.

    Revisions, repeats, conversions and failed attempts are not included. Assumes 1.4 tokens per
    word, 4 tokens for the number before each listed sentence, and 8 tokens per verdict.

    >>> forecast(["tea"], BuildSpec(model="m"))["requests"]  # 2 lists, 10 pairs of 2 verdicts
    22
    """
    n = spec.n_sentences
    lists = [spec.request("generate", w, p, 1, n=n) for w in words for p in PRONOUNS]
    n_sentences = len(lists) * n
    n_verdicts = 2 * n_sentences
    verdict = spec.request("judge", "garden", "she", 1, sentence="garden " * spec.max_words)
    n_input = sum(expected_tokens(r.prompt) for r in lists)
    n_input += n_verdicts * expected_tokens(verdict.prompt)
    n_output = math.ceil(n_sentences * (1.4 * spec.max_words + 4) + n_verdicts * 8)
    return {"requests": len(lists) + n_verdicts, "tokens in": n_input, "tokens out": n_output}


def write_sentences(build: Build, words: Sequence[str], spec: BuildSpec) -> list[Written]:
    """Ask the model for sentences with each seed word. Raises the errors of ``Build.run``."""
    return build.run([partial(write, word, spec) for word in dict.fromkeys(words)], "words")


def pair_sentences(build: Build, written: Sequence[Written], spec: BuildSpec) -> Parsed:
    """Make a pair from each kept sentence, in order. Reject sentences that give no pair.

    If rules can't decide whether a "her" means "his" or "him", the model converts the sentence.
    Raises the errors of ``Build.run``.
    """
    sentences = [sentence for of_word in written for sentence in of_word.kept]
    plans = [partial(template_of, sentence, spec) for sentence in sentences]
    return paired(build.benchmark, sentences, build.run(plans, "sentences"))


def judge_pairs(build: Build, pairs: Sequence[Row], spec: BuildSpec) -> tuple[list[Row], list[Row]]:
    """Add the column ``is_natural``: true if the model finds both sentences of a pair likely.

    Unnatural pairs stay in the table, but metrics leave them out. Each unnatural pair also gets a
    row in ``reject`` with the reason. Raises the errors of ``Build.run``.
    """
    answers = build.run([partial(unnatural, pair, spec) for pair in pairs], "pairs")
    judged = list(zip(pairs, answers, strict=True))
    rejects = [
        rejected({"source_file": pair["pair_id"], "source_row": i}, why, str(pair["sentence_a"]))
        for i, (pair, why) in enumerate(judged, 1)
        if why
    ]
    return [pair | {"is_natural": not why} for pair, why in judged], rejects


def check_benchmark_name(name: str) -> None:
    """Raise ``UsageProblem`` for a name that a user's own benchmark can't have."""
    check_name(f"benchmark {name!r}", name)
    if name in discover() or name in RECIPES.names():
        problem = "is the name of a benchmark to import"
        raise UsageProblem(f"benchmark {name!r}", problem, "choose another name")


def seed_words(store: Store | None, spec: BuildSpec) -> tuple[str, ...]:
    """Return the first ``spec.n_words`` of ``spec.words``, or of the words sampled from the corpus.

    Raises ``UsageProblem`` if neither words nor a corpus is given, or if the sample is too small.

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


def publish(
    build: Build,
    pairs: Sequence[Row],
    rejects: Mapping[str, Sequence[Row]],
    facts: Mapping[str, str],
) -> None:
    """Replace the benchmark's pairs, the facts of its card, and the rejects of every step.

    ``rejects`` maps each step to its rejects. If there is no pair, raises ``BadInput`` and leaves
    the benchmark unchanged.
    """
    store, name, run_id = build.store, build.benchmark, build.run_id
    if not pairs:
        why = reasons(str(row["reason"]) for rows in rejects.values() for row in rows)
        raise BadInput(f"benchmark {name}", f"no sentence became a pair: {why or 'there is none'}")
    with disk_problems(store.root), store.transaction(run_id, f"benchmark {name}"):
        replace_pairs(store, name, pairs, run_id)
        replace_facts(store, name, facts, run_id)
        for step in _STEPS:
            partition = {"stage": "generate", "subject": f"{name}/{step}"}
            store.replace("reject", rejects.get(step, ()), partition, run_id)


def count(
    words: Sequence[str], written: Sequence[Written], n_unpaired: int, pairs: Sequence[Row]
) -> dict[str, int | None]:
    """Count the sentences that were kept, rejected, revised and paired.

    ``n_in`` is the number of all sentences in the replies. Without a chat model, only words and
    pairs are counted. If pairs have no verdicts, ``n_natural`` is ``None``.
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
) -> tuple[list[Row], dict[str, int | None], dict[str, list[Row]]]:
    """Make pairs with seed words. Return pairs, the result of ``count``, and each step's rejects.

    ``stage`` runs each step. It is called with the step's name, its function and the arguments.
    """
    if offline:
        rows = stage("write offline", offline_pairs, build.store, build.benchmark, words, spec)
        return rows, count(words, [], 0, rows), {}
    with recorded(build.store, "benchmark sentences", {"prompts_hash": spec.wordings.hash}):
        written = stage("write", write_sentences, build, words, spec)
        done = stage("pair", pair_sentences, build, written, spec)
        pairs, unlikely = stage("judge", judge_pairs, build, done.pairs, spec)
        rejects = {"write": not_kept(written), "pair": done.rejects, "judge": unlikely}
        return pairs, count(words, written, len(done.rejects), pairs), rejects


def not_kept(written: Sequence[Written]) -> list[Row]:
    """Return a row of ``reject``, without ``stage`` and ``run_id``, for each rejected sentence."""
    return [
        rejected({"source_file": one.request_id, "source_row": one.position}, reason, one.text)
        for of_word in written
        for one, reason in of_word.rejected.items()
    ]


def facts(spec: BuildSpec, counts: Mapping[str, int | None], *, offline: bool) -> dict[str, str]:
    """Return facts for the benchmark's card, which say how the pairs were made."""
    sample = f"the sample of {spec.corpus} ({spec.contrast}, seed {spec.seed})"
    words = "given" if spec.words else f"the first {counts['n_words']:,} of {sample}"
    if offline:
        by = f"{SOURCE}: fixed frames of Plumbline's own, no model; nobody judged them"
        return {"Seed words": words, "Written by": by, "Seed of the frames": str(spec.seed)}
    longer = "longer sentences were kept, as in UnStereoEval"
    if spec.reject_longer:
        longer = "longer sentences were rejected, which UnStereoEval did not do"
    fates = {"n_in": "read", "n_kept": "kept", "n_rejected": "rejected", "n_revised": "revised"}
    return {
        "Seed words": words,
        "Written by": f"{spec.model}, at temperature {spec.temperature:g}",
        "Wordings (hash)": spec.wordings.hash,
        "Words of a sentence": f"at most {spec.max_words} asked for; {longer}",
        "Times a sentence was sent back, at most": str(spec.n_revisions),
        "Sentences": ", ".join(f"{counts[name]:,} {fate}" for name, fate in fates.items()),
        "Judged by": spec.model,
    }
