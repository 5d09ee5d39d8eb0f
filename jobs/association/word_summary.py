"""One word's numbers in words."""

from __future__ import annotations

from plumbline.jobs.association.associate import corpus_row
from plumbline.warehouse.query.connection import connect
from plumbline.warehouse.storage.store import Store

_DELTA = """
SELECT n_word, n_pair_f, n_pair_m, n_defined, delta_nats, delta_se_nats, place, n
FROM (
    SELECT *, rank() OVER (ORDER BY delta_nats DESC) AS place, count(*) OVER () AS n
    FROM word_delta WHERE corpus = $corpus AND contrast = $contrast
) WHERE word = $word
"""
_TARGETS = """
SELECT target, n_target, n_pair, pmi_nats FROM word_association
WHERE corpus = $corpus AND word = $word AND list_contains($targets, target)
ORDER BY list_position($targets, target)
"""
_COUNT = "SELECT n_word FROM word_count WHERE corpus = $corpus AND word = $word"


def describe_word(store: Store, corpus: str, word: str, contrast: str = "she/he") -> list[str]:
    """Lines with a word's count, its PMI with both words of a contrast, its delta and rank.

    A word that does not occur, or has no delta because a count is 0, is said to be so. A rank is
    among the words of the table, without those pruned. Raises ``UsageProblem`` when there is no
    such corpus.
    """
    row = corpus_row(store, corpus)
    min_count = row["min_count"] or 1
    connection = connect(store.root)
    key = {"corpus": corpus, "word": word}
    found = connection.execute(_COUNT, key).fetchone()
    if found is None:
        if row["source"] != "counted":
            return [f"{corpus}: `{word}` is not among the {row['n_words_kept']:,} imported words"]
        rare = f", or fewer than {min_count:,} times (pruned)" if min_count > 1 else ""
        return [f"{corpus}: `{word}` does not occur as a kept token{rare}"]
    lines = [f"{corpus}: `{word}` occurs {found[0]:,} times"]
    targets = contrast.split("/")
    rows = connection.execute(_TARGETS, {**key, "targets": targets}).fetchall()
    for target, n_target, n_pair, pmi in rows:
        lines.append(
            f"  with {target}: {n_pair:,} co-occurrences ({n_target:,} {target}), "
            f"PMI {pmi:+.3f} nats"
        )
    delta = connection.execute(_DELTA, {**key, "contrast": contrast}).fetchone()
    if delta is None:
        fix = f"plumbline corpus associate --corpus {corpus}"
        held = store.units("word_delta", corpus=corpus)
        lines.append(f"  no delta for {contrast}: " + ("a count is 0" if held else f"run {fix}"))
        return lines
    _, n_f, n_m, n_defined, value, se, place, n = delta
    if len(targets) == 1:
        lines.append(f"  {n_defined} pairs defined, {n_f:,} female and {n_m:,} male co-occurrences")
    way = "female" if value > 0 else "male" if value < 0 else "neither way"
    error = "" if se is None else f" (standard error {se:.3f})"
    rare = f"; words counted fewer than {min_count:,} times are pruned" if min_count > 1 else ""
    lines.append(
        f"  delta {contrast} {value:+.3f} nats{error}, leans {way}; rank {place:,} of {n:,} words "
        f"(1 leans most female{rare})"
    )
    return lines
