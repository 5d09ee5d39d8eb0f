"""Look up a corpus's row, word lists and deltas in a warehouse. Check or lock a corpus."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any, TypeVar, cast

import pyarrow as pa
import pyarrow.compute as pc

from plumbline.warehouse import languages, wordlists
from plumbline.warehouse.errors import UsageProblem, did_you_mean
from plumbline.warehouse.storage.locks import lock
from plumbline.warehouse.storage.store import Store


def corpus_row(store: Store, corpus: str) -> dict[str, Any]:
    """Return a corpus's row of table ``corpus``. Raises ``UsageProblem`` for an unknown corpus."""
    rows: list[dict[str, Any]] = store.read("corpus", corpus=corpus).to_pylist()
    if rows:
        return rows[0]
    names = sorted(store.read("corpus")["corpus"].to_pylist())
    only = f"not in the warehouse, only {', '.join(names)}"
    fix = did_you_mean(corpus, names, f"plumbline corpus count ... --corpus {corpus}")
    problem = only if names else "no corpus is in the warehouse"
    raise UsageProblem(f"corpus {corpus!r}", problem, fix)


def corpus_lists(store: Store, row: dict[str, Any]) -> list[wordlists.WordList]:
    """Return a corpus's word lists: the list used for counting, then the others sorted by name."""
    rows_of_list: dict[str, list[dict[str, Any]]] = {}
    for entry in store.read("word_list", corpus=row["corpus"]).to_pylist():
        rows_of_list.setdefault(entry["word_list"], []).append(entry)
    if not rows_of_list:
        return [wordlists.load(row["targets"])]
    lists = [wordlists.from_rows(rows) for _, rows in sorted(rows_of_list.items())]
    # Put the original list first. Find it by its name, or by its hash if the targets are `all`.
    return sorted(lists, key=lambda x: (x.name != row["targets"], x.hash != row["targets_hash"]))


def corpus_language(row: dict[str, Any]) -> languages.Language:
    """Return a corpus's language. ``row`` is the corpus's row of table ``corpus``."""
    if row["language"] is None:
        return languages.load(languages.ENGLISH)
    return languages.parse(row["language"], row["language_file"])


def corpus_contrast(store: Store, corpus: str, contrast: str) -> str:
    """Return ``contrast``. If the corpus isn't English, its first word pair replaces she/he."""
    row = corpus_row(store, corpus)
    if contrast != "she/he" or row["language"] is None:
        return contrast
    return corpus_lists(store, row)[0].pairs[0].contrast


def corpus_deltas(store: Store, corpus: str, contrast: str) -> pa.Table:
    """Return a corpus's rows of ``word_delta`` for one contrast.

    Raises ``UsageProblem`` for an unknown corpus or contrast. The error lists the known names.
    """
    corpus_row(store, corpus)
    import pyarrow.dataset as ds  # importing this takes half a second if pandas is installed

    rows = store.read("word_delta", ds.field("contrast") == contrast, corpus=corpus)
    if rows.num_rows:
        return rows
    contrasts = sorted(set(store.read("word_delta", corpus=corpus)["contrast"].to_pylist()))
    if contrasts:
        problem = f"no word has a delta of {contrast!r}, only of {', '.join(contrasts)}"
        fix = "give one of these with --contrast, or count the corpus with a list that has it"
        raise UsageProblem(f"corpus {corpus!r}", problem, fix)
    fix = f"plumbline corpus associate --corpus {corpus}; if that was done, count more text:"
    fix += " docs/tutorial.md"
    raise UsageProblem(f"corpus {corpus!r}", "no word has a delta", fix)


_SIMILAR = """
SELECT word FROM word_count WHERE corpus = $corpus AND jaro_winkler_similarity(word, $word) > 0.85
ORDER BY damerau_levenshtein(word, $word), n_word DESC, word LIMIT 3
"""


def unknown_words(store: Store, corpus: str, words: Sequence[str]) -> dict[str, UsageProblem]:
    """Return {word: error} for words that aren't in a corpus. The errors suggest similar words.

    Raises ``UsageProblem`` for an unknown corpus.
    """
    from plumbline.warehouse.query.connection import rows_of

    corpus_row(store, corpus)
    counted = store.read("word_count", corpus=corpus)["word"]
    is_known = pc.is_in(pa.array(words, counted.type), value_set=counted).to_pylist()
    problems = {}
    for word in (word for word, known in zip(words, is_known, strict=True) if not known):
        found = rows_of(store, _SIMILAR, {"corpus": corpus, "word": word})
        similar = f"similar words: {', '.join(row['word'] for row in found)}"
        fix = similar if found else "docs/corpora.md#what-is-a-token"
        problem = f"is not a counted word of corpus {corpus}: it doesn't occur, or was left out"
        problems[word] = UsageProblem(f"word {word!r}", problem, fix)
    return problems


def failed_checks(store: Store, corpus: str) -> dict[str, pa.Table]:
    """Check the tables of a counted corpus. Return {failed check: table of wrong rows}.

    Each check is a query in ``sql/checks/*.sql``.

    Raises:
        UsageProblem: there is no such corpus, or it was imported and has no shards to check.
        BadInput: a file of the tables can't be read.
    """
    from plumbline.warehouse.query.connection import arrow_rows, connect, sql, sql_names

    row = corpus_row(store, corpus)
    if row["source"] != "counted":
        raise UsageProblem(f"corpus {corpus!r}", "was imported and has no shards")
    lists = corpus_lists(store, row)
    targets = sorted({word for x in lists for word in x.targets})
    checks = {name.removeprefix("checks/"): sql(name) for name in sql_names("checks")}
    connection = connect(store.root, "".join(checks.values()))
    given = {"corpus": corpus, "targets": targets}
    found = {name: arrow_rows(connection, text, given) for name, text in checks.items()}
    return {name: rows for name, rows in found.items() if rows.num_rows}


_Function = TypeVar("_Function", bound=Callable[..., Any])


def writes_corpus(function: _Function) -> _Function:
    """Decorate a function. Each call locks the corpus that the second argument names.

    If another process holds the lock, the function raises ``UsageProblem``, which names the
    process. If the lock file can't be written, it raises ``BadInput``.
    """

    @wraps(function)
    def locked(store: Store, corpus: str, /, *args: Any, **kwargs: Any) -> Any:
        with lock(store, f"corpus {corpus}", f"corpus {corpus!r}"):
            return function(store, corpus, *args, **kwargs)

    return cast(_Function, locked)
