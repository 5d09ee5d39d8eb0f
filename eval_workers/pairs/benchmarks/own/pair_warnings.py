"""Warnings about pairs that can be used, but may be mistakes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from plumbline.eval_workers.pairs.benchmarks.own.baseline import baseline_warning
from plumbline.eval_workers.pairs.benchmarks.own.parsed_pairs import Parsed
from plumbline.warehouse.finding import LEAST_PAIRS

#: Most entries such as `x/y (1)` in the warning about too few pairs.
_NAMED = 6


def pair_warnings(parsed: Parsed) -> Iterator[str]:
    """A line for each kind of doubt: unexpected numbers, turned groups, content words, few pairs.

    >>> groups = [("x", "y"), ("y", "x"), *[("X", "y")] * 10]
    >>> rows = [{"sentence_a": f"{k}", "sentence_b": "b", "group_a": a, "group_b": b}
    ...         for k, (a, b) in enumerate(groups)]
    >>> for line in pair_warnings(Parsed("demo", rows)):
    ...     print(line)
    Warning: x/y and y/x are measured apart (if you meant one, swap the sides of the other's rows)
    Warning: fewer than 10 pairs say little: x/y (1), y/x (1)
    """
    n_in = Counter(str(pair.get("category") or "") for pair in parsed.pairs)
    for category in dict.fromkeys([*n_in, *(category for category, _ in parsed.reasons)]):
        if n_in[category] != (expected := parsed.expected.get(category, n_in[category])):
            problem = f"{n_in[category]:,} pairs, the recipe expects {expected:,}"
            yield f"Warning: {category}: {problem} (is the source whole, and the same version?)"
    n_of = Counter((str(pair["group_a"]), str(pair["group_b"])) for pair in parsed.pairs)
    turned = sorted(f"{a}/{b}" for a, b in n_of if (b, a) in n_of)
    if turned:
        fix = "if you meant one, swap the sides of the other's rows"
        yield f"Warning: {' and '.join(turned)} are measured apart ({fix})"
    yield from baseline_warning(parsed.pairs)
    few = [f"{a}/{b} ({n})" for (a, b), n in sorted(n_of.items()) if n < LEAST_PAIRS]
    if few:
        more = f" and {len(few) - _NAMED:,} more" if len(few) > _NAMED else ""
        named = ", ".join(few[:_NAMED])
        yield f"Warning: fewer than {LEAST_PAIRS} pairs say little: {named}{more}"
