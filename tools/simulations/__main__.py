"""Print the table of a simulation as Markdown."""

from __future__ import annotations

import argparse
import pkgutil
from collections.abc import Mapping, Sequence
from importlib import import_module

import tools.simulations


def markdown(rows: Sequence[Mapping[str, object]]) -> str:
    """Rows as a table of Markdown; their keys are the headings, floats have three digits.

    >>> print(markdown([{"world": "even", "coverage": 0.95}]))
    | world | coverage |
    |---|---|
    | even | 0.95 |
    """
    if not rows:
        return ""
    heads = list(rows[0])
    lines = [heads, *([_text(row[head]) for head in heads] for row in rows)]
    text = [f"| {' | '.join(line)} |" for line in lines]
    return "\n".join([text[0], "|" + "---|" * len(heads), *text[1:]])


def _text(value: object) -> str:
    return f"{value:.3g}" if isinstance(value, float) else str(value)


def main() -> None:
    """Run the simulation that is named."""
    names = [module.name for module in pkgutil.iter_modules(tools.simulations.__path__)]
    parser = argparse.ArgumentParser(description=tools.simulations.__doc__)
    parser.add_argument("name", choices=[name for name in names if name != "__main__"])
    parser.add_argument("--draws", type=int, help="by default as many as the documentation's")
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    simulation = import_module(f"tools.simulations.{given.name}")
    print(simulation.ABOUT)
    print(markdown(simulation.rows(given.draws or simulation.DRAWS, given.seed)))


if __name__ == "__main__":
    main()
