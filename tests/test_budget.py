"""No part of the project is larger than its budget, and budgets only fall (`tools/budget.py`)."""

from tools.budget import PRODUCT, entries, measured, over, summed

#: Statements fall at least this much as fast as lines: deleting comments isn't simplifying.
LEAST_STATEMENTS_PER_LINE = 0.9


def test_nothing_is_over_its_budget() -> None:
    exceeded = over(measured(), entries()[-1][1])
    assert not exceeded, "\n".join(["larger than tests/budget.toml allows:", *exceeded])


def test_statements_fall_with_lines() -> None:
    (_, first), (_, last) = entries()[0], entries()[-1]
    old_lines, _, old_statements, _ = summed(_python(first), PRODUCT)
    lines, _, statements, _ = summed(_python(last), PRODUCT)
    least = LEAST_STATEMENTS_PER_LINE * (1 - lines / old_lines)
    assert 1 - statements / old_statements >= least


def _python(sizes: dict[str, dict[str, list[int]]]) -> dict[str, dict[str, list[int]]]:
    return {room: {k: v for k, v in kinds.items() if k == "py"} for room, kinds in sizes.items()}
