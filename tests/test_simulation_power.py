"""Effects of the smallest size that a benchmark should find are found about four times in five."""

from __future__ import annotations

import pytest

from tools.simulations import power

pytestmark = pytest.mark.slow


def test_the_promised_power_is_that_of_a_simulation() -> None:
    found = {(r["measure"], r["clusters"], r["icc"]): r["found"] for r in power.rows(600, seed=4)}
    assert len(found) == 24
    # Two standard errors are 0.03. A large effect varies less than a small one: found more often.
    assert all(0.68 <= share <= 0.93 for share in found.values()), found
    many = [share for (_, name, icc), share in found.items() if name.startswith("490")]
    assert all(0.76 <= share <= 0.84 for share in many), many
