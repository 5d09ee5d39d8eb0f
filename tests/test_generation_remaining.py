"""What is left of a stopped build: compared with the requests that a scripted server then gets."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from plumbline.eval_workers.chat.budget import Budget
from plumbline.eval_workers.chat.chat_session import Build
from plumbline.eval_workers.chat.ledger import look
from plumbline.eval_workers.writing.forecast import (
    Remaining,
    forecast,
    planned_requests,
    remaining,
)
from plumbline.warehouse.errors import Interrupted
from plumbline.warehouse.storage.store import Store
from tests.chat_server import ChatServer, serving
from tests.test_benchmark_build import SPEC, _built, _order, _requests, imperfect


def _left(store: Store) -> Remaining:
    return remaining(SPEC.words, SPEC.writing(), look(store, "demo").replies)


def _stopped_after(n: int, store: Store, server: ChatServer) -> None:
    order = _order(store, server)
    stopped = Build(store, "demo", "stopped", order.server, Budget(max_requests=n))
    with pytest.raises(Interrupted):
        _built(stopped)


@pytest.mark.slow
def test_what_is_left_is_what_is_then_asked(store: Store) -> None:
    """While sentences are written it is about that many, then it is that many."""
    spec = SPEC.writing()
    with serving(imperfect) as server:
        assert _left(store) == Remaining(0, forecast(SPEC.words, spec).n_requests, False)
        found = {}
        for n in (40, 80, 180, 300):
            _stopped_after(n, store, server)
            assert server.n_asked == n
            found[n] = _left(store)
        rows = list(planned_requests(store, "demo", SPEC.words, SPEC))
        assert rows[-1][:3] == ("demo", "requests left", found[300].n_requests)
        _built(_order(store, server, "again"))
        n_all = server.n_asked
    assert [found[n].is_known for n in found] == [False, False, True, True]
    for n, left in found.items():
        if left.is_known:
            assert left.n_requests == n_all - n and left.n_written == len(SPEC.words)
        else:
            assert left.n_written < len(SPEC.words)
            assert abs(left.n_requests - (n_all - n)) < 0.25 * (n_all - n)
    assert _left(store) == Remaining(len(SPEC.words), 0, True)
    (*_, row) = planned_requests(store, "demo", SPEC.words, SPEC)
    assert row[1:3] == ("requests left", 0)
    other = replace(SPEC, model="another")
    assert remaining(SPEC.words, other.writing(), look(store, "demo").replies) == Remaining(
        0, forecast(SPEC.words, other.writing()).n_requests, False
    )


def test_a_look_reads_the_file_and_else_the_table(store: Store, tmp_path: Path) -> None:
    assert not look(store, "demo").replies
    with serving(imperfect) as server:
        _stopped_after(50, store, server)
    held, path = look(store, "demo"), look(store, "demo").path
    assert len(held.replies) == 50 == held.spent.n_requests
    copy = Store.open(tmp_path / "copy")
    copy.replace("generation_request", _requests(store), {"benchmark": "demo"}, "r")
    before_files = sorted(copy.root.rglob("*"))
    assert look(copy, "demo").replies == held.replies and look(copy, "demo").spent == held.spent
    assert sorted(copy.root.rglob("*")) == before_files, "a look writes nothing"
    content = path.read_bytes()
    path.write_bytes(content + b'{"event": "asked", "row')  # what another process is writing
    assert look(store, "demo").replies == held.replies
    assert path.read_bytes().startswith(content)
