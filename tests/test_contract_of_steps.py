"""Every resumable step: killed, damaged, shared or out of room, it ends with the same rows."""

import signal
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from plumbline.eval_workers.chat.ledger import open_ledger
from plumbline.eval_workers.scoring.pair_choices import PairChoices
from plumbline.warehouse.errors import BadInput, Interrupted, UsageProblem
from plumbline.warehouse.steps import runner
from plumbline.warehouse.steps.claimed_chunks import write_results
from plumbline.warehouse.storage.store import Store
from tests import step_cases as cases
from tests.chat_server import ChatServer, Say, serving
from tests.step_cases import ASKED, COMPUTED, Asked, Computed, Row, ended, started
from tests.tiny_models import save

#: Steps that ask and compute nothing here.
_ASKED_ONLY = {PairChoices}


def test_every_step_has_a_case() -> None:
    assert {type(case.step) for case in COMPUTED.values()} == cases.step_classes() - _ASKED_ONLY


# ---- computed by a model


@dataclass(frozen=True)
class Whole:
    """Rows and chunks of a run that nothing disturbed."""

    rows: dict[str, list[Row]]
    chunks: Sequence[Sequence[Any]]


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(save("neox", tmp_path_factory.mktemp("models") / "tiny-neox"))


@pytest.fixture(scope="module", params=COMPUTED)
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def case(name: str, monkeypatch: pytest.MonkeyPatch) -> Computed:
    case = COMPUTED[name]
    monkeypatch.setattr(case.module, case.chunk, case.size)
    return case


@pytest.fixture
def computed(case: Computed, monkeypatch: pytest.MonkeyPatch) -> list[Sequence[Any]]:
    """Every chunk that is computed in this process from now on."""
    return watched(case, monkeypatch)


def watched(case: Computed, monkeypatch: pytest.MonkeyPatch) -> list[Sequence[Any]]:
    kind, seen = type(case.step), list[Sequence[Any]]()
    compute = kind.compute

    def watching(self: Any, model: Any, items: Sequence[Any]) -> Sequence[Any]:
        seen.append(items)
        return compute(self, model, items)

    monkeypatch.setattr(kind, "compute", watching)
    return seen


@pytest.fixture(scope="module")
def whole(name: str, tmp_path_factory: pytest.TempPathFactory, model: str) -> Whole:
    case, store = COMPUTED[name], Store.open(tmp_path_factory.mktemp("whole") / "w")
    case.fill(store)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(case.module, case.chunk, case.size)
        chunks = watched(case, patch)
        case.run(store, model)
    assert len(chunks) >= 4
    return Whole(case.rows(store), chunks)


def nothing_is_left(store: Store) -> bool:
    return not [path for path in (store.root / "_work").rglob("*.*") if path.suffix != ".jsonl"]


@pytest.mark.slow
def test_killed_midway_it_is_resumed_with_the_same_rows(
    name: str,
    case: Computed,
    store: Store,
    model: str,
    whole: Whole,
    computed: list[Sequence[Any]],
    tmp_path: Path,
) -> None:
    case.fill(store)
    before = case.rows(store)
    given = (cases.killed_in_chunk, 3)
    assert ended(started(name, store, model, *given, report=tmp_path / "error")) == -signal.SIGKILL
    assert case.rows(store) == before
    case.run(store, model)
    assert computed == whole.chunks[2:], "two chunks were kept, the third died unfinished"
    assert case.rows(store) == whole.rows and nothing_is_left(store)


def test_damaged_chunks_alone_are_computed_again(
    case: Computed,
    store: Store,
    model: str,
    whole: Whole,
    computed: list[Sequence[Any]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    case.fill(store)
    with monkeypatch.context() as stopped:
        stopped.setattr(runner, "publish", lambda *_: pytest.fail("stopped"))
        with pytest.raises(pytest.fail.Exception):
            case.run(store, model)
    files = sorted((store.root / "_work").rglob("*.parquet"))
    assert len(files) == len(whole.chunks) == len(computed)
    computed.clear()
    cut, emptied, other = files[:3]
    cut.write_bytes(cut.read_bytes()[:-20])
    emptied.write_bytes(b"")
    write_results(other, [])
    case.run(store, model)
    assert len(computed) == 3 and case.rows(store) == whole.rows and nothing_is_left(store)


@pytest.mark.slow
def test_workers_share_the_chunks_and_a_dead_one_s_are_taken_over(
    name: str, case: Computed, store: Store, model: str, whole: Whole, tmp_path: Path
) -> None:
    case.fill(store)
    workers = [
        started(
            *(name, store, model, cases.sharing, str(tmp_path / f"{worker}.log"), 3, n_lives),
            report=tmp_path / f"{worker}.error",
        )
        for worker, n_lives in (("one", 99), ("two", 99), ("killed", 1))
    ]
    assert sorted(map(str, map(ended, workers))) in (["-9", "0", "0"], ["0", "0", "0"])
    logs = {path.stem: path.read_text().splitlines() for path in tmp_path.glob("*.log")}
    items = [item for logged in logs.values() for item in logged]
    assert sorted(items) == sorted(repr(item) for chunk in whole.chunks for item in chunk)
    assert set(logs) == {"one", "two", "killed"}
    assert case.rows(store) == whole.rows and nothing_is_left(store)


# ---- asked from a server


@pytest.fixture(scope="module", params=ASKED)
def asked_name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def asking(asked_name: str, store: Store) -> Asked:
    """A case of the filled warehouse ``store``."""
    case = ASKED[asked_name]
    case.fill(store)
    return case


@pytest.fixture
def server(asking: Asked) -> Iterator[ChatServer]:
    with serving(sampler=asking.answer) as server:
        yield server


@dataclass(frozen=True)
class Paid:
    """Rows, requests and size of the ledger of a run that nothing disturbed."""

    rows: dict[str, list[Row]]
    n_asked: int
    n_bytes: int


@pytest.fixture(scope="module")
def paid(asked_name: str, tmp_path_factory: pytest.TempPathFactory) -> Paid:
    case, store = ASKED[asked_name], Store.open(tmp_path_factory.mktemp("whole") / "w")
    case.fill(store)
    with serving(sampler=case.answer) as server:
        case.run(store, server.url, None)
    assert server.n_asked >= 5 and set(server.asked.values()) == {1}
    return Paid(case.rows(store), server.n_asked, ledger_of(store).stat().st_size)


def ledger_of(store: Store) -> Path:
    (path,) = (store.root / "_work" / "generate").rglob("ledger.jsonl")
    return path


def results(case: Asked, store: Store) -> dict[str, list[Row]]:
    """The rows of a case without its requests."""
    return {k: v for k, v in case.rows(store).items() if k != "generation_request"}


def test_killed_midway_nothing_that_was_answered_is_asked_again(
    *, asked_name: str, asking: Asked, store: Store, server: ChatServer, paid: Paid, tmp_path: Path
) -> None:
    before = results(asking, store)
    running: list[Any] = []

    def fatal(body: dict[str, Any]) -> Say:
        if server.n_asked == paid.n_asked // 2 + 1:
            cases.kill(running[0])
        return asking.answer(body)

    server.sampler = fatal
    report = tmp_path / "error"
    running.append(started(asked_name, store, server.url, cases.undisturbed, report=report))
    assert ended(running[0]) == -signal.SIGKILL
    assert results(asking, store) == before
    server.sampler = asking.answer
    with ledger_of(store).open("ab") as file:
        file.write(b'{"event": "replied", "request_id": "torn')
    asking.run(store, server.url, None)
    assert server.n_asked == paid.n_asked + 1, "the one that was on its way"
    assert asking.rows(store) == paid.rows
    requests = store.read("generation_request").to_pylist()
    (again,) = [row for row in requests if row["n_attempts"] > 1]
    assert "the run ended before a reply" in again["error"]
    asking.run(store, "http://127.0.0.1:9", 0)
    assert asking.rows(store) == paid.rows, "from the ledger alone"


def drop(store: Store, case: Asked) -> None:
    """Remove the results of a case: its requests are in the ledger."""
    for table in {*case.tables} - {"model", "sampling"}:
        store.replace(table, [], {}, "")


def test_a_damaged_or_open_ledger_is_refused_and_nothing_is_paid_for_twice(store: Store) -> None:
    case = ASKED["choose"]
    case.fill(store)
    with serving(sampler=case.answer) as server:
        case.run(store, server.url, None)
        n_asked, rows = server.n_asked, case.rows(store)
        path = ledger_of(store)
        lines = path.read_bytes().splitlines(keepends=True)
        path.write_bytes(b"".join([lines[0], b"garbage\n", *lines[1:]]))
        drop(store, case)
        with pytest.raises(BadInput, match=r"ledger\.jsonl, line 2: is damaged \(remove that line"):
            case.run(store, server.url, None)
        path.write_bytes(b"".join(lines))
        (ledger,) = set(store.read("generation_request")["benchmark"].to_pylist())
        refused = pytest.raises(UsageProblem, match="another command writes to it: process")
        with open_ledger(store, ledger), refused:
            case.run(store, server.url, None)
        case.run(store, server.url, None)
    assert server.n_asked == n_asked and case.rows(store) == rows


def test_a_full_disk_is_one_line_and_nothing_is_paid_for_twice(
    *, asked_name: str, asking: Asked, store: Store, server: ChatServer, paid: Paid, tmp_path: Path
) -> None:
    before, report = results(asking, store), tmp_path / "error"
    given = (cases.full_beyond, paid.n_bytes // 2)
    assert ended(started(asked_name, store, server.url, *given, report=report)) == 3
    (line,) = report.read_text().splitlines()
    assert "File too large" in line and "run the same command again" in line
    assert results(asking, store) == before and not list(store.root.rglob("*.tmp"))
    n_asked = server.n_asked
    assert 0 < n_asked < paid.n_asked
    asking.run(store, server.url, None)
    assert server.n_asked in (paid.n_asked, paid.n_asked + 1), "the one that had no room"
    assert asking.rows(store) == paid.rows


def test_a_budget_stops_it_and_a_larger_one_goes_on(
    asking: Asked, store: Store, server: ChatServer, paid: Paid
) -> None:
    before, few = results(asking, store), paid.n_asked // 2
    done = rf"could exceed {few} requests; \d+ of \d+ {asking.unit} are done"
    with pytest.raises(Interrupted, match=done):
        asking.run(store, server.url, few)
    assert server.n_asked == few and results(asking, store) == before
    asking.run(store, server.url, paid.n_asked)
    assert server.n_asked == paid.n_asked and set(server.asked.values()) == {1}
    assert asking.rows(store) == paid.rows
