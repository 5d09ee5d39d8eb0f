"""Fill ``word_association``, ``word_delta`` and ``word_bound`` from the counts of a corpus."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

from plumbline.jobs.association.measures import (
    SUM,
    CorpusCounts,
    association_rows,
    bound_rows,
    contrasts,
    delta_rows,
)
from plumbline.jobs.counting.corpus_lookup import (
    corpus_language,
    corpus_lists,
    corpus_row,
    writes_corpus,
)
from plumbline.jobs.kernel.corpus_options import ALL
from plumbline.jobs.kernel.tokens.language_tables import stop_words
from plumbline.jobs.kernel.tokens.tokenizer import Targets
from plumbline.warehouse import wordlists
from plumbline.warehouse.errors import BadInput, UsageProblem
from plumbline.warehouse.input.input_rows import number, records
from plumbline.warehouse.run_records import config_hash, recorded
from plumbline.warehouse.storage.store import Store
from plumbline.warehouse.text.progress import progress
from plumbline.warehouse.wordlists import WordList, WordPair


def usable_lists(counted: Sequence[wordlists.WordList]) -> dict[str, wordlists.WordList]:
    """Return {name: list} for ``counted``, and for installed lists that add no words to these.

    >>> sorted(usable_lists([wordlists.load("gendered")]))
    ['gendered', 'pronouns', 'she-he']
    >>> sorted(usable_lists([wordlists.load("she-he")]))
    ['she-he']
    """
    targets = set(targets_of(counted))
    named = {name: wordlists.load(name) for name in wordlists.LISTS.names()}
    usable = {n: x for n, x in named.items() if targets.issuperset(x.targets)}
    return usable | {x.name: x for x in counted}


def contrasts_of(store: Store, row: dict[str, Any]) -> dict[str, tuple[WordPair, ...]]:
    """Return {contrast: its word pairs} for all contrasts that a corpus's word lists define."""
    return contrasts(usable_lists(corpus_lists(store, row)).values())


def sides_of(store: Store, row: dict[str, Any], contrast: str) -> tuple[str, str]:
    """Return the names of a contrast's two sides, such as "she" and "he" for ``she/he``."""
    is_listed = row["targets"] and "/" not in contrast
    lists = usable_lists(corpus_lists(store, row)).values() if is_listed else ()
    return wordlists.side_names(contrast, lists)


@writes_corpus
def associate(
    store: Store,
    corpus: str,
    targets: str = "",
    word_weights: Path | None = None,
) -> dict[str, int | None]:
    """Compute every word's PMI with every target, and every word's delta for every contrast.

    Each pair of target words in the corpus's lists (:func:`usable_lists`) is a contrast, such as
    she/he. A list with ``has_mean`` defines two more contrasts. Contrast ``NAME``, named after the
    list, is the weighted mean over its pairs. Contrast ``NAME-sum`` is the sum over its pairs
    (UnStereoEval, App. A, Eq. 4) and gets no rows in ``word_bound``. A PMI or delta that needs a
    count of 0 gets no row. Deltas that were imported without counts stay in ``word_delta``.

    Args:
        targets: name or path of a word list to add to the corpus. Its words must have been counted
            as targets. If ``CorpusOptions.targets`` is "all", every word except stop words was.
        word_weights: CSV file of the weights v(w) in Eq. 4 (see :func:`read_weights`). Each list
            with ``has_mean`` then also defines a weighted sum, ``NAME-sum-STEM``. STEM is the
            file's name without its suffix. Words without a weight get no row for this sum.

    Returns:
        A dictionary. ``n_contrasts`` is the number of contrasts. ``n_associations``, ``n_deltas``
        and ``n_bounds`` are the numbers of rows in the three tables. ``n_weighted`` is the number
        of words in the corpus that have a weight (``None`` without ``word_weights``).

    Raises:
        UsageProblem: the corpus is unknown or was imported without counts, or the list can't be
            added (see :func:`with_list`).
        BadInput: the file of weights can't be used.
    """
    row = corpus_row(store, corpus)
    if row["n_pairs"] is None:
        raise UsageProblem(f"corpus {corpus!r}", "was imported without counts, which PMI needs")
    weights = read_weights(word_weights) if word_weights else {}
    counted = with_list(store, row, targets) if targets else corpus_lists(store, row)
    lists, words = usable_lists(counted), targets_of(counted)
    config: dict[str, object] = {"corpus": corpus, "lists": sorted(lists)}
    if word_weights:
        config |= {"word_weights": word_weights.stem, "word_weights_hash": config_hash(weights)}
    with recorded(store, "corpus associate", config) as run_id:
        # With targets `all`, most words are targets. Read only pairs with a target in the lists.
        pairs = store.read("pair_count", ds.field("target").isin(words), corpus=corpus)
        word_count = store.read("word_count", corpus=corpus)
        totals = (row["n_kept_tokens"], row["n_pairs"], row["rule"], row["window_tokens"])
        counts = CorpusCounts(word_count, pairs, *totals)
        by_name = contrasts(lists.values())
        v_of, n_weighted = {SUM: np.ones(len(counts.n_word))}, None
        if word_weights:
            v = np.array([weights.get(word, math.nan) for word in counts.words.to_pylist()])
            v_of[f"{SUM}-{word_weights.stem}"], n_weighted = v, int(np.isfinite(v).sum())
        sums = {
            f"{x.name}{end}": (x.pairs, v)
            for end, v in v_of.items()
            for x in lists.values()
            if x.has_mean and f"{x.name}{end}" not in by_name
        }
        all_contrasts = {name: (pairs, None) for name, pairs in by_name.items()} | sums
        kept = store.read("word_delta", ds.field("n_pair_f").is_null(), corpus=corpus)

        def deltas_of(name: str) -> pa.Table:
            rows = delta_rows(counts, name, *all_contrasts[name])
            of_name = kept.filter(pc.equal(kept["contrast"], name)).select(rows.column_names)
            return pa.concat_tables([rows, of_name.cast(rows.schema)])

        bounds = (bound_rows(counts, name, pairs) for name, pairs in by_name.items())
        parts: dict[str, tuple[Iterable[pa.Table], int, str]] = {
            "association": (association_rows(counts, words), len(words), "targets"),
            "delta": (map(deltas_of, all_contrasts), len(all_contrasts), "contrasts"),
            "bound": (bounds, len(by_name), "contrasts"),
        }
        where = {"corpus": corpus}
        with store.transaction(run_id, "corpus associate"):
            if targets:
                listed = [entry for x in counted for entry in x.rows(corpus)]
                store.replace("word_list", listed, where, run_id)
            n_rows = {
                f"n_{name}s": _write(store, run_id, corpus, name, *x) for name, x in parts.items()
            }
    return {"n_contrasts": len(all_contrasts), **n_rows, "n_weighted": n_weighted}


def _write(
    store: Store, run_id: str, corpus: str, name: str, parts: Iterable[pa.Table], n: int, unit: str
) -> int:
    """Replace a corpus's rows of ``word_<name>`` with those in ``parts``. Return their number."""
    staged, n_rows = store.stage(f"word_{name}", {"corpus": corpus}, run_id), 0
    with progress(f"{name}s of {corpus}", unit) as update:
        update(0, n)
        for k, rows in enumerate(parts):
            rows = rows.append_column("corpus", pa.array([corpus] * rows.num_rows, pa.string()))
            n_rows += staged.write_part(f"part-{k:05}", rows.to_batches())
            update(k + 1, n)
    store.commit(staged)
    return n_rows


def read_weights(path: Path) -> dict[str, float]:
    """Read word weights, such as toxicities, from a CSV file with columns ``word`` and ``weight``.

    Raises ``BadInput`` if the file can't be read, has no rows, or has a bad row. In a bad row, the
    weight is not a finite number, or the word is repeated or is not a single lowercase word.
    """
    weights: dict[str, float] = {}
    for record in records(path, ("word", "weight")):
        word, at = record.fields.get("word", "").strip(), f"{path}, row {record.number}"
        is_lowercase_word = len(word.split()) == 1 and word == word.lower()
        if record.problem or not is_lowercase_word or word in weights:
            state = "is listed twice" if word in weights else "is not one lowercase word"
            raise BadInput(at, record.problem or f"{word!r} {state}")
        try:
            weights[word] = number(record.fields, "weight")
        except ValueError as e:
            raise BadInput(at, str(e)) from e
    if not weights:
        raise BadInput(str(path), "has no rows", "columns: word, weight")
    return weights


def with_list(store: Store, row: dict[str, Any], name: str) -> list[WordList]:
    """Return a corpus's word lists and one more list, which is given by name or path.

    The list that the corpus was counted with comes first. The new list replaces a list of the same
    name that was added earlier.

    Raises:
        UsageProblem: the list is unknown, or the corpus was counted with another list of this name.
            Also raised if a word of the list isn't a single token or wasn't counted as a target.
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
    Targets(new.targets, language.token_rules).checked()
    lost = set(new.targets) - set(original.targets)
    if row["targets"] == ALL:  # only stop words can be missing from the counts
        lost &= stop_words(language.token_rules)
    if lost:
        problem = f"its count lacks the targets {', '.join(sorted(lost))} of list {new.name}"
        fix = f"count it with this list: plumbline corpus count ... --targets {name} --replace"
        raise UsageProblem(corpus, problem, fix)
    return [original, *(x for x in added if x.name != new.name), new]


def targets_of(lists: Sequence[WordList]) -> tuple[str, ...]:
    """Return all distinct words of the given lists."""
    return tuple(dict.fromkeys(chain.from_iterable(x.targets for x in lists)))
