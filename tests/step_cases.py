"""A small case of every resumable step, and processes that are killed or short of room in one."""

import gc
import multiprocessing
import os
import re
import resource
import signal
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from importlib import import_module
from multiprocessing.process import BaseProcess
from pathlib import Path
from types import ModuleType
from typing import Any

from plumbline.eval_workers.chat.client import ServerOptions
from plumbline.eval_workers.chat.requests import ChatModel
from plumbline.eval_workers.chat.session import Build
from plumbline.eval_workers.disclosure import word_probabilities
from plumbline.eval_workers.disclosure.word_probabilities import ProbeStep, load_words
from plumbline.eval_workers.fairpair import perturbers
from plumbline.eval_workers.fairpair.perturbed_set import perturb_set
from plumbline.eval_workers.models.model_options import ModelOptions
from plumbline.eval_workers.models.sampling_contract import SamplingOptions
from plumbline.eval_workers.models.scoring_contract import Instruction
from plumbline.eval_workers.scoring import continuations, pair_choices, pair_scores
from plumbline.eval_workers.scoring.continuations import Continuations
from plumbline.eval_workers.scoring.model_step import ModelStep, run_on_model
from plumbline.eval_workers.scoring.pair_choices import ChoiceOptions
from plumbline.eval_workers.scoring.pair_scores import PairScores
from plumbline.warehouse.errors import PlumblineError
from plumbline.warehouse.storage.store import Store
from tests import test_choose, test_fairpair_perturb_set, test_sample, test_score
from tests.chat_server import Sampler, Script
from tests.conftest import REPOSITORY
from tests.prompt_rows import put_prompts

Row = Mapping[str, Any]
#: Columns that a run which was stopped and resumed may have otherwise.
_OF_A_RUN = {"run_id", "n_attempts", "n_tokens_most", "seconds", "error"}

#: What steps publish beside their own table.
_BESIDE = ("sampling", "instruction", "attribute_pair", "model", "reject")


@dataclass(frozen=True)
class Computed:
    """A step whose chunks a model computes; ``chunk``: the constant that makes them small."""

    step: ModelStep
    fill: Callable[[Store], None]
    module: ModuleType
    chunk: str
    size: int

    def run(self, store: Store, model: str) -> None:
        run_on_model(store, model, ModelOptions(), [self.step], "run")

    def rows(self, store: Store) -> dict[str, list[Row]]:
        return _rows(store, self.step.table, *_BESIDE)


def _rows(store: Store, *tables: str) -> dict[str, list[Row]]:
    """Rows of tables in a fixed order, without the columns that a stop may change."""
    read = {table: store.read(table).to_pylist() for table in tables}
    kept = {
        table: [{k: v for k, v in row.items() if k not in _OF_A_RUN} for row in rows]
        for table, rows in read.items()
    }
    return {table: sorted(rows, key=repr) for table, rows in kept.items()}


def _fill_prompts(store: Store) -> None:
    put_prompts(store, "demo", [f"The {who} said" for who in ("clerk", "nurse", "boss", "cook")])


_SAMPLING = SamplingOptions(6.0, None, max_new_tokens=12, instruction=Instruction("Go on:"))

#: Steps by name whose chunks have files of their own until they are published.
COMPUTED: dict[str, Computed] = {
    "score": Computed(
        PairScores("demo"),
        lambda store: test_score._pairs(store, test_score.TEMPLATES[-22:]),
        *(pair_scores, "CHUNK_TEXTS", 8),
    ),
    "probe": Computed(
        ProbeStep("demo", load_words(None, "she-he"), Instruction("Go on:")),
        *(_fill_prompts, word_probabilities, "CHUNK_PROMPTS", 1),
    ),
    "sample": Computed(
        Continuations("demo", _SAMPLING, 13), *(test_sample.fill, continuations, "CHUNK_DRAWS", 10)
    ),
}


@dataclass(frozen=True)
class Asked:
    """A step whose replies are paid for: a ledger has each as it comes.

    Attributes:
        answer: the whole answer of a server to the body of a request.
        run: with the address of a server, or with at most 0 requests from the ledger.
        unit: what a budget that is used up counts.
    """

    fill: Callable[[Store], None]
    answer: Sampler
    run: Callable[[Store, str, int | None], object]
    tables: tuple[str, ...]
    unit: str

    def rows(self, store: Store) -> dict[str, list[Row]]:
        return _rows(store, *self.tables, "reject", "generation_request")


def _by(script: Script) -> Sampler:
    """The answers of a script that are the same however often it is asked."""
    return lambda body: script(body["messages"][-1]["content"], 1)


def _choose(store: Store, url: str, most: int | None) -> None:
    options = ChoiceOptions(model="m", n=2, concurrency=1, base_url=url, max_requests=most)
    pair_choices.choose(store, "demo", options, "run")


def _perturbed(store: Store, url: str, most: int | None) -> None:
    server = ServerOptions(url, concurrency=1, max_requests=most)
    build = Build(store, perturbers.ledger_name("cs"), "run", server)
    wording = perturbers.load_wording()
    perturber = perturbers.ChatPerturber(build, ChatModel("scripted"), wording)
    perturb_set(store, "cs", "m", "s", perturber, "run")


def _continued(store: Store) -> None:
    texts = [f" He ran {k}.{test_fairpair_perturb_set.LONG}" for k in range(5)]
    test_fairpair_perturb_set._continuations(store, texts)


#: Steps by name that ask a server, each reply once.
ASKED: dict[str, Asked] = {
    "choose": Asked(
        lambda store: test_choose.fill(store, 6),
        test_choose.chooser(0.7, 0.1),
        *(_choose, ("pair_choice", "model"), "asks"),
    ),
    "perturbations": Asked(
        *(_continued, _by(test_fairpair_perturb_set._obedient), _perturbed),
        *(("perturbed_continuation",), "texts"),
    ),
}
CASES: dict[str, Computed | Asked] = {**COMPUTED, **ASKED}


def step_classes() -> set[type[ModelStep]]:
    """Every step of the product."""
    for path in (REPOSITORY / "eval_workers").rglob("*.py"):
        if re.search(r"^class \w+\(ModelStep\b", path.read_text("utf-8"), re.M):
            import_module(
                ".".join(("plumbline", *path.relative_to(REPOSITORY).with_suffix("").parts))
            )
    return {kind for kind in ModelStep.__subclasses__() if kind.__module__.startswith("plumbline.")}


# ---- processes

#: A disturbance of a case, in the process in which it is going to run.
Disturb = Callable[..., None]
#: Seconds that a process may take.
_WAIT_S = 60.0
#: What takes seconds to load is there when a process begins.
_MODULES = (
    "plumbline.eval_workers.models.transformers_backend",
    "transformers.conversion_mapping",
    "transformers.models.gpt_neox.modeling_gpt_neox",
    "pandas",
)


def started(
    name: str, store: Store, where: str, disturb: Disturb, *given: object, report: Path
) -> BaseProcess:
    """A process that runs a case; its error is written to ``report``."""
    arguments = (name, str(store.root), where, disturb, given, str(report))
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([__name__, *_MODULES])
    process = context.Process(target=_run, args=arguments)
    process.start()
    return process


def ended(process: BaseProcess) -> int | None:
    """The exit status, negative for a signal; a fork server may say 255 for SIGKILL."""
    process.join(_WAIT_S)
    return -signal.SIGKILL if process.exitcode == 255 else process.exitcode


def _run(
    name: str, root: str, where: str, disturb: Disturb, given: Sequence[object], report: str
) -> None:
    gc.freeze()  # as in conftest: what is loaded is not looked through again
    case = CASES[name]
    disturb(case, *given)
    store = Store.open(root)
    try:
        if isinstance(case, Asked):
            case.run(store, where, None)
        else:
            setattr(case.module, case.chunk, case.size)
            case.run(store, where)
    except PlumblineError as e:
        resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY,) * 2)
        Path(report).write_text(str(e), encoding="utf-8")
        sys.exit(e.exit_code)


def undisturbed(case: Computed | Asked) -> None:
    """Nothing happens to it."""


def killed_in_chunk(case: Computed, number: int) -> None:
    """SIGKILL once a chunk is computed and before it is written."""
    kind, n_calls = type(case.step), 0
    compute = kind.compute

    def killed(self: Any, model: Any, items: Sequence[Any]) -> Sequence[Any]:
        nonlocal n_calls
        n_calls += 1
        results = compute(self, model, items)
        if n_calls == number:
            os.kill(os.getpid(), signal.SIGKILL)
        return results

    kind.compute = killed  # type: ignore[method-assign]


def sharing(case: Computed, log: str, n_workers: int, n_lives: int) -> None:
    """Log computed chunks; wait until each worker has one; SIGKILL in the one after ``n_lives``."""
    kind, path, n_calls = type(case.step), Path(log), 0
    compute = kind.compute

    def watched(self: Any, model: Any, items: Sequence[Any]) -> Sequence[Any]:
        nonlocal n_calls
        n_calls += 1
        if n_calls > n_lives:
            os.kill(os.getpid(), signal.SIGKILL)
        path.with_suffix(".begun").touch()
        end = time.monotonic() + _WAIT_S
        while len(list(path.parent.glob("*.begun"))) < n_workers and time.monotonic() < end:
            time.sleep(0.02)  # each has a chunk, however busy the machine
        results = compute(self, model, items)
        with path.open("a", encoding="utf-8") as file:
            file.writelines(f"{item!r}\n" for item in items)
        return results

    kind.compute = watched  # type: ignore[method-assign]


def full_beyond(case: Computed | Asked, n_bytes: int) -> None:
    """The disk takes no file of more than so many bytes."""
    resource.setrlimit(resource.RLIMIT_FSIZE, (n_bytes, resource.RLIM_INFINITY))


def kill(process: BaseProcess) -> None:
    """SIGKILL, and wait until it is gone."""
    with suppress(ProcessLookupError):
        process.kill()
    process.join(_WAIT_S)
