"""What looks at sockets sees them; `test_session` looks at Spark's, `test_stop` at Prefect's."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.sockets import is_loopback, listener, listening

pytestmark = pytest.mark.skipif(not Path("/proc/net/tcp").exists(), reason="looks into /proc")


def test_what_looks_at_sockets_sees_them() -> None:
    session = os.getsid(0)
    with listener("127.0.0.1"):
        assert "127.0.0.1" in listening(session)
    with listener("0.0.0.0"):
        assert "0.0.0.0" in listening(session)
    ours = ("127.0.0.1", "127.1.2.3", "::1", "::ffff:127.0.0.1")
    theirs = ("0.0.0.0", "::", "10.0.0.1", "::ffff:10.0.0.1")
    assert all(map(is_loopback, ours)) and not any(map(is_loopback, theirs))
