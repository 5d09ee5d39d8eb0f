"""What the product makes of stored inputs is what it was: `python -m tools.frozen` shows more."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tools.frozen.compare import OUTPUTS, differences, same
from tools.frozen.outputs import KINDS, Outputs
from tools.frozen.plain import text_of
from tools.frozen.rebuild import frozen
from tools.frozen.recipe import INPUTS

#: Lines of a difference that a failure shows.
_LINES = 60

slow = pytest.mark.slow


@pytest.fixture(scope="module")
def outputs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Outputs]:
    with frozen(tmp_path_factory.mktemp("frozen")) as printed:
        yield Outputs(printed)


@pytest.mark.parametrize("kind", [k if k == "help" else pytest.param(k, marks=slow) for k in KINDS])
def test_outputs_are_the_frozen_ones(outputs: Outputs, kind: str) -> None:
    found = differences(kind, outputs.kind(kind)).splitlines()
    more = f"\n... and {len(found) - _LINES} lines" if len(found) > _LINES else ""
    shown = "\n".join(found[:_LINES])
    assert not found, f"see tools/frozen/__main__.py\n{shown}{more}"


def test_files_are_small() -> None:
    files = [p for top in (INPUTS, OUTPUTS) for p in top.rglob("*") if p.is_file()]
    assert sum(path.stat().st_size for path in files) < 3_000_000
    assert {path.name for path in OUTPUTS.iterdir()} == {*KINDS}


def test_only_the_ninth_digit_may_differ() -> None:
    assert same("a | 0.123456789 | 7", "a | 0.12345679 | 7")
    assert not same("a | 0.123456789 | 7", "a | 0.123456889 | 7")
    assert not same("a | 0.12 | 7", "a | 0.13 | 7") and not same("a 7", "a 8")


def test_text_of_a_page_is_in_reading_order() -> None:
    page = "<style>p{}</style><h2>One <b>two</b></h2><tr><th>a</th><td>1</td></tr><svg><text>x"
    assert text_of(page) == "One two\na | 1\nx"
