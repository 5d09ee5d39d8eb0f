"""Adding word lists to a counted corpus: new pairs are counted in the kept documents."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from itertools import chain
from typing import Any

import pyarrow.dataset as ds

from plumbline.jobs.counting.corpus_lookup import corpus_language, corpus_lists
from plumbline.jobs.counting.corpus_options import ALL
from plumbline.jobs.counting.document_words import Evidence, evidence_of
from plumbline.jobs.counting.merge import BATCH_ROWS, Output
from plumbline.jobs.counting.partials import ShardJob, check_failed, partial_files, token_files
from plumbline.jobs.kernel.counter import warm_up
from plumbline.jobs.kernel.tokens.language_tables import stop_words
from plumbline.jobs.kernel.tokens.tokenizer import Targets
from plumbline.jobs.spark.engine_choice import engine_of
from plumbline.warehouse.errors import UsageProblem
from plumbline.warehouse.run_records import config_hash
from plumbline.warehouse.storage.store import Staged, Store
from plumbline.warehouse.text.progress import progress
from plumbline.warehouse.wordlists import WordList


def with_list(store: Store, row: dict[str, Any], name: str) -> list[WordList]:
    """A corpus's word lists, first the list it was counted with, and a new list by name or path.

    The new list replaces an added list of the same name.

    Raises:
        UsageProblem: the list is unknown; the corpus was counted with another list of this name; or
            a word of the list is not one token, or is a stop word that counting dropped.
    """
    original, *added = corpus_lists(store, row)
    language = corpus_language(row)
    new = language.word_list(name)
    corpus = f"corpus {row['corpus']!r}"
    if new.name == original.name:
        if new.hash != original.hash:
            problem = f"{corpus} was counted with another list of this name"
            raise UsageProblem(f"word list {name}", problem, "rename it")
        return [original, *added]
    Targets(new.targets, language.token_rules)  # raises unless each is one token
    stop_targets = stop_words(language.token_rules) & set(new.targets)
    if dropped := sorted(stop_targets - set(original.targets)):
        problem = f"its count dropped the stop words {', '.join(dropped)} of list {new.name}"
        fix = f"count it with a list that holds them: plumbline corpus count ... --targets {name}"
        raise UsageProblem(corpus, problem, fix)
    return [original, *(x for x in added if x.name != new.name), new]


def targets_of(lists: Sequence[WordList]) -> tuple[str, ...]:
    """All words of some lists, each once."""
    return tuple(dict.fromkeys(chain.from_iterable(x.targets for x in lists)))


def stage_pairs(
    store: Store,
    row: dict[str, Any],
    targets: Sequence[str],
    run_id: str,
    master: str | None,
    memory: str,
) -> Staged | None:
    """Stage a ``pair_count`` with the corpus's pairs of ``targets``; None if nothing changes.

    Pairs of new targets are counted shard by shard into partial counts. If this command is
    interrupted, the next one uses them.

    Raises:
        UsageProblem, MissingComponent: see ``evidence_of``.
        BadInput: the kept documents of a shard are damaged.
    """
    corpus = row["corpus"]
    counted = targets_of(corpus_lists(store, row))
    if row["targets"] == ALL or set(targets) == set(counted):
        return None
    words = store.read("word_count", corpus=corpus)
    # Words without a row of `word_count` have no pairs: they were pruned, or don't occur.
    counted_words = set(words["word"].to_pylist())
    new = tuple(word for word in targets if word not in counted and word in counted_words)
    merge = _count(store, evidence_of(store, corpus), new, master, memory) if new else None
    staged = store.stage("pair_count", {"corpus": corpus}, run_id)
    if merge:
        staged_words = store.stage("word_count", {"corpus": corpus}, run_id)
        staged_words.write_part("part-00000", words.to_batches())
        output = Output(staged, {name: row[name] for name in ("corpus", "rule", "window_tokens")})
        is_pruned = row["n_words"] > row["n_words_kept"]
        merge(staged_words, output, all_pairs=False, pruned=is_pruned)
        store.discard(staged_words)
    has_target = ds.field("target").isin(targets)
    for number, file in enumerate(store.snapshot().files("pair_count", {"corpus": corpus})):
        old = store.rows_of("pair_count", file, has_target)
        staged.write_part(f"old-{number:05}", old.to_batches(BATCH_ROWS))
    return staged


def _count(
    store: Store, evidence: Evidence, new: tuple[str, ...], master: str | None, memory: str
) -> Callable[..., int] | None:
    """Count the pairs with new targets; returns a function that merges them, None without pairs."""
    targets, options = (
        replace(evidence.targets, words=new),
        replace(evidence.options, memory=memory),
    )
    name = config_hash({"kept": evidence.directory.name, "targets": new})
    where = store.work_directory("recount", name).resolve()
    files = {shard: token_files(evidence.directory, shard.fingerprint) for shard in evidence.shards}
    tokens = {shard: str(pairs[0][0].resolve()) for shard, pairs in files.items() if pairs}
    job = ShardJob(str(where), targets, options, is_recount=True)
    with progress(f"count {evidence.corpus['corpus']} again", "shards") as update:
        warm_up()
        engine = engine_of(store, options.memory_bytes, master)
        ledgers = engine.count(list(dict.fromkeys(tokens.values())), job, update)
    check_failed(ledgers, "no list was added")
    partials = [file for s in tokens for file in partial_files(where, s.fingerprint, "pairs")]
    return partial(engine.merge_pairs, partials) if partials else None
