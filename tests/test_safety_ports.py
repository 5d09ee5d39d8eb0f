"""Nothing listens beyond this machine by default; `test_stop` looks at Prefect's server as well."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from plumbline.jobs.spark.session import settings_for, spark_session
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


@pytest.mark.spark
def test_spark_listens_on_this_machine_alone() -> None:
    settings = settings_for(None, {}, {})
    assert settings["spark.ui.enabled"] == "false"
    assert settings["spark.driver.bindAddress"] == settings["spark.driver.host"] == "127.0.0.1"
    before = listening(os.getsid(0))
    assert spark_session().range(3).count() == 3
    found = listening(os.getsid(0)) - before
    assert all(map(is_loopback, found)), found
    assert any(map(is_loopback, listening(os.getsid(0))))
