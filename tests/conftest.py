"""Shared fixtures. Tests use no network; those that need the reference data say so when skipped."""

from __future__ import annotations

import fcntl
import functools
import gc
import os
import shutil
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import settings

from plumbline.eval_workers.chat import client
from plumbline.warehouse.storage.store import Store

if TYPE_CHECKING:
    from plumbline.eval_workers.models.scoring_contract import TextScore
    from tests.browser import Browser
    from tests.prefect_server import Place

REPOSITORY = Path(__file__).resolve().parents[1]

os.environ.setdefault("HF_HUB_OFFLINE", "1")
# The first call of a compiled function takes seconds; no test here is about time.
settings.register_profile("plumbline", deadline=None)
settings.load_profile("plumbline")

os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
# Two test processes share the cores: a second thread of a tiny model would only wait for its turn.
os.environ.setdefault("OMP_NUM_THREADS", "1")
# Spark's JVM lives for seconds here: compiling its code twice and collecting garbage side by side
# cost more than they save.
os.environ.setdefault("SPARK_SUBMIT_OPTS", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC")
# Failed requests are repeated at once, and fewer times.
client.MAX_ATTEMPTS, client.FIRST_WAIT_S, client.LONGEST_WAIT_S = 4, 0.01, 5.0


def reference_directory() -> Path | None:
    """Where the reference data lies: ``PLUMBLINE_DATA``, or ``shared/data`` beside the checkout."""
    given = os.environ.get("PLUMBLINE_DATA")
    path = Path(given) if given else REPOSITORY.parent / "shared" / "data"
    return path.resolve() if path.is_dir() else None


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    if reference_directory() is not None:
        return
    skip = pytest.mark.skip(reason="no reference data: set PLUMBLINE_DATA to its directory")
    for item in items:
        if "reference" in item.keywords:
            item.add_marker(skip)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup() -> None:
    """Look only at new objects from here on: else each release of a tiny model takes 0.3 s."""
    gc.collect()
    gc.freeze()


def pytest_unconfigure() -> None:
    """At the end, libraries of nanobind take what is never collected for a leak."""
    gc.unfreeze()


@pytest.fixture(scope="session")
def data() -> Path:
    """The reference data directory (use with the marker ``reference``)."""
    path = reference_directory()
    assert path is not None, "tests that use this fixture carry the marker `reference`"
    return path


def made_once(factory: pytest.TempPathFactory, name: str, make: Callable[[Path], object]) -> Path:
    """A directory that the first process that asks for it makes, for the others to read."""
    is_worker = "PYTEST_XDIST_WORKER" in os.environ
    top = factory.getbasetemp().parent if is_worker else factory.getbasetemp()
    with (top / f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (top / name).exists():
            made = factory.mktemp(name)
            make(made)
            made.rename(top / name)
    return top / name


@pytest.fixture(scope="session")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel of this checkout."""
    from tests.distributions import build, copy_sources

    def make(directory: Path) -> None:
        build("wheel", copy_sources(directory / "sources"), directory)

    (path,) = made_once(tmp_path_factory, "package", make).glob("*.whl")
    return path


@pytest.fixture(scope="session")
def saved(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Small random models by kind, made when they are first asked for; tests only read them."""
    from tests.tiny_models import Saved

    return Saved(tmp_path_factory.mktemp("models"))


@pytest.fixture(scope="session")
def model(saved: dict[str, Path]) -> Path:
    """A small random GPT-NeoX that tests only read."""
    return saved["neox"]


@pytest.fixture(scope="session")
def world(tmp_path_factory: pytest.TempPathFactory) -> Store:
    """A measured closed world that tests only read; `copied` is for those that write."""
    from tests.test_report import build_world

    def make(directory: Path) -> None:
        build_world(Store.open(directory / "warehouse"))

    return Store.open(made_once(tmp_path_factory, "measured", make) / "warehouse")


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    """A Prefect server with every deployment of `prefect.yaml` and a worker of each pool."""
    from tests.prefect_server import serving

    with serving(tmp_path_factory.mktemp("deployments")) as there:
        there.start_worker("spark", "--limit", "1")
        there.start_worker("gpu")
        there.run("deploy", "--all")
        yield there


@pytest.fixture(scope="session")
def s3() -> Iterator[str]:
    """The address of a real S3 server on this machine."""
    from moto.server import ThreadedMotoServer

    server = ThreadedMotoServer("127.0.0.1", port=0)
    server.start()
    host, port = server.get_host_and_port()
    yield f"http://{host}:{port}"
    server.stop()


@pytest.fixture
def bucket(s3: str, monkeypatch: pytest.MonkeyPatch) -> str:
    """The name of a new bucket on it; variables lead this process there."""
    import boto3

    values = {"AWS_ENDPOINT_URL": s3, "AWS_REGION": "us-east-1"}
    values |= {"AWS_ACCESS_KEY_ID": "made-up", "AWS_SECRET_ACCESS_KEY": "made-up-too"}
    for variable, value in values.items():
        monkeypatch.setenv(variable, value)
    name = f"b{time.time_ns()}"
    boto3.client("s3").create_bucket(Bucket=name)
    return name


@pytest.fixture(scope="session")
def wordnet_read_once() -> Iterator[None]:
    """Reading WordNet's files takes seconds; those of one directory are read once."""
    from plumbline.jobs.seed_words import vocabulary

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(vocabulary, "_own_files", functools.cache(vocabulary._own_files))
        yield


@pytest.fixture
def store(tmp_path: Path) -> Store:
    """An empty warehouse."""
    return Store.open(tmp_path / "warehouse")


def in_session(session: int) -> dict[int, str]:
    """Command lines of the processes of a session by id; one that waits to be seen has none."""
    found = {}
    for entry in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):  # it has ended meanwhile
            if os.getsid(int(entry.name)) == session:
                found[int(entry.name)] = (entry / "cmdline").read_text()
    return found


def copied(store: Store, directory: Path) -> Store:
    """A copy of a warehouse to write to."""
    return Store.open(shutil.copytree(store.root, directory / "warehouse"))


@pytest.fixture
def texts_scored(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Every text that reaches a model of transformers from now on, in order."""
    from plumbline.eval_workers.models.local.causal_model import CausalModel

    seen: list[str] = []
    score = CausalModel.score

    def watched(self: CausalModel, texts: Sequence[str]) -> list[TextScore]:
        seen.extend(texts)
        return score(self, texts)

    monkeypatch.setattr(CausalModel, "score", watched)
    return seen


@pytest.fixture(scope="session")
def _browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    from tests.browser import browser, program

    if program() is None:
        pytest.skip("no Chromium: apt-get install chromium")
    with browser(tmp_path_factory.mktemp("profile")) as started:
        yield started


@pytest.fixture
def driven(_browser: Browser) -> Browser:
    """A browser, 1200 pixels wide and in light colours."""
    _browser.resize(1200)
    _browser.colours("light")
    return _browser
