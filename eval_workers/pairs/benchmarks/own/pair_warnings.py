"""Warnings about pairs that can be used, but may be mistakes."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence

from plumbline.eval_workers.pairs.benchmarks._parsed import Row
from plumbline.eval_workers.pairs.benchmarks.own.baseline import baseline_warning
from plumbline.warehouse.finding import LEAST_PAIRS

#: Most entries such as `x/y (1)` in the warning about too few pairs.
_NAMED = 6


def pair_warnings(pairs: Sequence[Row]) -> Iterator[str]:
    """A line for each kind of doubt: names of groups, repeats, content words, too few pairs.

    >>> groups = [("x", "y"), ("y", "x"), *[("X", "y")] * 10]
    >>> rows = [{"sentence_a": f"{k}", "sentence_b": "b", "group_a": a, "group_b": b}
    ...         for k, (a, b) in enumerate(groups)]
    >>> for line in pair_warnings(rows):
    ...     print(line)
    Warning: x/y and y/x are measured apart (if you meant one, swap the sides of the other's rows)
    Warning: X and x are measured apart (if you meant one group, spell its name the same way)
    Warning: fewer than 10 pairs say little: x/y (1), y/x (1)
    """
    n_of = Counter((str(pair["group_a"]), str(pair["group_b"])) for pair in pairs)
    turned = sorted(f"{a}/{b}" for a, b in n_of if (b, a) in n_of)
    if turned:
        fix = "if you meant one, swap the sides of the other's rows"
        yield f"Warning: {' and '.join(turned)} are measured apart ({fix})"
    spellings = defaultdict[str, set[str]](set)
    for group in {name for groups in n_of for name in groups}:
        spellings[group.casefold()].add(group)
    alike = [" and ".join(sorted(same)) for _, same in sorted(spellings.items()) if len(same) > 1]
    if alike:
        fix = "if you meant one group, spell its name the same way"
        yield f"Warning: {', '.join(alike)} are measured apart ({fix})"
    if repeats := [*_repeats(pairs)]:
        again, first = repeats[0]
        yield (
            "Warning: pairs with the sentences of an earlier pair but another direction or "
            f"category: {len(repeats):,}; the first, {again['pair_id']}, repeats "
            f"{first['pair_id']} (each counts; delete those you don't mean)"
        )
    yield from baseline_warning(pairs)
    few = [f"{a}/{b} ({n})" for (a, b), n in sorted(n_of.items()) if n < LEAST_PAIRS]
    if few:
        more = f" and {len(few) - _NAMED:,} more" if len(few) > _NAMED else ""
        named = ", ".join(few[:_NAMED])
        yield f"Warning: fewer than {LEAST_PAIRS} pairs say little: {named}{more}"


def _repeats(pairs: Sequence[Row]) -> Iterator[tuple[Row, Row]]:
    """Pairs that repeat the sentences of an earlier pair but not its direction and category.

    Yields the pair and that earlier pair. The order of a pair's sentences does not matter.
    """
    earlier: dict[frozenset[object], Row] = {}
    for pair in pairs:
        first = earlier.setdefault(frozenset((pair["sentence_a"], pair["sentence_b"])), pair)
        if _direction_and_category(pair) != _direction_and_category(first):
            yield pair, first


def _direction_and_category(pair: Row) -> tuple[object, object]:
    """The sentence that a stereotype favours, and the category."""
    favoured = pair.get(f"sentence_{pair['direction']}") if pair.get("direction") else None
    return favoured, pair.get("category")
