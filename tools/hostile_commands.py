"""Hostile inputs to all commands, run in process: how each ends, and what should not have been.

Used by `tools/fuzz.py commands`. A forked child takes a batch: limited memory, no network, a home
directory and a working directory of its own. What may not be: a traceback, a crash, a command that
waits for ever or can't be stopped, an error without its line or with control characters, a write
outside the scratch directory. One that works on past its limit of processor time is stopped.
"""

from __future__ import annotations

import errno
import io
import json
import os
import random
import resource
import select
import shutil
import signal
import sys
import tempfile
import threading
import time
import traceback
import unicodedata
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any

from plumbline.pipelines.command.base import class_of, has_plan, parameters
from plumbline.pipelines.command.main import main
from plumbline.pipelines.command.registry import targets
from plumbline.warehouse.storage.store import Store
from tools.hostile_values import TEXTS, Values, write_files

_BATCH = 1_000
#: Seconds of the processor after which a command is stopped, and until it counts as hanging.
_WORK_S, _WAIT_S, _STOP_S = 2.0, 120, 60
_WORLD = (
    "corpus demo --out text --tokens 5000",
    "corpus count text/*.zst --corpus c --evidence",
    "corpus associate --corpus c",
    "benchmark import closed-world",
    "train text/*.zst --corpus c --name grams --preset 5gram",
    "score --model models/grams --benchmark closed-world",
    "measure",
)
_COLUMNS = ("corpus", "word", "benchmark", "pair_id", "model", "model_key", "run_id", "contrast")
_SLOW = (
    *("duckdb", "pandas", "pyarrow.dataset", "scipy.stats", "numba", "torch", "transformers"),
    "peft",
    *("plumbline.eval_workers.models.transformers_backend", "plumbline.pipelines.report.write"),
)
_MEANT = set("\n\t")
_WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
_CHANGES = (
    *("os.rename", "os.mkdir", "os.rmdir", "os.remove", "os.link", "os.symlink"),
    *("os.truncate", "os.chmod", "os.chown", "os.utime", "shutil.rmtree"),
)


@dataclass
class Case:
    """A command line, and files and variables that come with it."""

    words: list[str]
    variables: dict[str, str] = field(default_factory=dict)
    files: dict[str, str] = field(default_factory=dict)


class _Stopped(BaseException):
    pass


def made(rng: random.Random, values: Values) -> Case:
    """A command with one to four options, hostile for the most part."""
    name = rng.choice(list(targets()))
    kind = class_of(name)
    known = parameters(kind)
    needed = [one for one in known if one.default is ...]
    others = [one for one in known if one.default is not ...]
    chosen = [*needed, *rng.sample(others, min(len(others), rng.randint(1, 3)))]
    case, lines = Case(name.split()), []
    for one in chosen:
        is_hostile = rng.random() < (0.2 if one in needed else 0.6)
        place = rng.random()
        if place < 0.8 or one.on.positional:
            case.words += values.words(kind, one, hostile=is_hostile)
        elif place < 0.9:
            lines.append(f"{one.name} = {values.literal(kind, one)}")
        else:
            variable = one.on.variable or f"PLUMBLINE_{name}_{one.name}".upper()
            text = values.value(kind, one, hostile=is_hostile).replace("\0", "")
            case.variables[variable.replace(" ", "_").replace("-", "_")] = text
    if lines and rng.random() < 0.7 and not kind.at_top:
        case.files["config.toml"] = "\n".join(lines)
        case.words += ["--config", "config.toml"]
    elif lines:
        table = "" if kind.at_top else f"[{'.'.join(name.replace('-', '_').split())}]\n"
        case.files["plumbline.toml"] = table + "\n".join(lines)
    if has_plan(kind) and rng.random() < 0.6:
        case.words.append("--dry-run")
    if rng.random() < 0.2:
        case.words += ["--format", rng.choice(("json", "csv", "table", rng.choice(TEXTS)))]
    return case


def attempt(case: Case, here: Path) -> dict[str, Any]:
    """Run a case in this process; how it ended."""
    work = here / "work"
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir()
    os.chdir(work)
    for name, text in case.files.items():
        Path(name).write_bytes(text.encode("utf-8", "surrogatepass"))
    before = dict(os.environ)
    os.environ.update({k: v for k, v in case.variables.items() if _can_be(v)})
    streams = [io.TextIOWrapper(io.BytesIO(), encoding="utf-8") for _ in range(2)]
    end: dict[str, Any] = {"status": None, "found": []}
    outside.clear()
    _stopped.clear()
    old, (sys.stdout, sys.stderr) = (sys.stdout, sys.stderr), streams
    started = time.process_time()
    signal.setitimer(signal.ITIMER_PROF, _WORK_S, 0.5)
    signal.setitimer(signal.ITIMER_REAL, _WAIT_S, 0.5)
    try:
        try:
            end["status"] = main(case.words)
        finally:
            _quiet()
    except BaseException as e:
        if not _stopped.is_set():
            end["status"] = "traceback"
            end["found"].append(f"{type(e).__name__}: {_ours(e)}: {str(e)[:200]!r}")
        elif time.process_time() - started < _WORK_S / 4:
            end["status"] = "waited"
            end["found"].append(f"waited: {_ours(e)}")
    finally:
        sys.stdout, sys.stderr = old
        os.environ.clear()
        os.environ.update(before)
    _, err = (_text(stream) for stream in streams)
    end["found"] += [f"write outside: {path}" for path in dict.fromkeys(outside)]
    if end["status"] is None or (_stopped.is_set() and end["status"] != "waited"):
        end["status"] = "worked on"
    elif isinstance(end["status"], int):
        end["found"] += _of_errors(end["status"], err)
    return end


def _quiet() -> None:
    signal.setitimer(signal.ITIMER_PROF, 0)
    signal.setitimer(signal.ITIMER_REAL, 0)


def _can_be(text: str) -> bool:
    try:
        os.fsencode(text)
    except UnicodeEncodeError:
        return False
    return True


def _text(stream: io.TextIOWrapper) -> str:
    try:
        stream.flush()
        written: bytes = stream.buffer.getvalue()  # type: ignore[attr-defined]
        return written.decode("utf-8", "replace")
    except ValueError:
        return ""


def _of_errors(status: int, err: str) -> Iterator[str]:
    unseen = {"Cc", "Cf", "Cs", "Zl", "Zp"}
    if odd := {c for c in err if unicodedata.category(c) in unseen} - _MEANT:
        yield f"error output holds {sorted(map(ascii, odd))}"
    lines = [line for line in err.splitlines() if line.startswith("error:")]
    if status and not lines:
        yield f"status {status} without an error line: {err[-200:]!r}"
    if any(len(line) > 5_000 for line in lines):
        yield "an error line of more than 5,000 characters"
    if "Traceback (most recent" in err or "Exception ignored" in err:
        yield f"a traceback in the output: {err[-300:]!r}"


def _ours(error: BaseException) -> str:
    frames = traceback.extract_tb(error.__traceback__)
    root = str(Path(__file__).resolve().parents[1])
    own = [f for f in frames if root in os.path.realpath(f.filename) and "tools/" not in f.filename]
    last = own[-1] if own else frames[-1]
    inner = "" if last is frames[-1] else f" in {frames[-1].filename[-40:]}:{frames[-1].lineno}"
    path = os.path.realpath(last.filename).removeprefix(f"{root}/")
    return f"{path}:{last.lineno}{inner}"


#: Paths that a case wrote to, or tried to, outside its directories.
outside: list[str] = []


def _watch(here: Path) -> None:
    """Note every change of files outside ``here`` that Python makes."""
    within = (f"{here}/", "/dev/null", "/proc/self/", "/dev/shm/", f"/proc/{os.getpid()}/")

    def hook(event: str, given: tuple[Any, ...]) -> None:
        if event in ("socket.connect", "socket.bind"):
            raise PermissionError(errno.EACCES, "no network")
        if event == "open":
            path, _, flags = given
            paths = [path] if isinstance(flags, int) and flags & _WRITES else []
        elif event in _CHANGES:
            paths = [given[0], given[1]] if event in ("os.rename", "os.link") else [given[0]]
        else:
            return
        for path in paths:
            if isinstance(path, int):
                continue
            try:
                real = os.path.realpath(os.fsdecode(path))
            except (ValueError, TypeError, OSError):
                continue
            if not f"{real}/".startswith(within) or real.startswith(f"{here}/outside"):
                outside.append(f"{event} {real}")

    sys.addaudithook(hook)


#: Most address space, and most bytes of a written file, of a child.
_MOST_BYTES = 8 << 30
#: Set when a case was stopped: a library may make an error of its own of that.
_stopped = threading.Event()


def _stop(*_: object) -> None:
    _stopped.set()
    raise _Stopped


def batch(seed: int, first: int, n: int, here: Path, pipe: int, known: Any) -> None:
    """Run inputs in this child; a line of JSON before and after each."""
    for kind in (resource.RLIMIT_AS, resource.RLIMIT_FSIZE):
        resource.setrlimit(kind, (_MOST_BYTES, _MOST_BYTES))
    signal.signal(signal.SIGPROF, _stop)
    signal.signal(signal.SIGALRM, _stop)
    null = os.open(os.devnull, os.O_RDWR)
    for number in range(3):
        os.dup2(null, number)
    _watch(here)
    for k in range(first, first + n):
        line = {"k": k}
        os.write(pipe, (json.dumps(line) + "\n").encode())
        case = _case(seed, k, here, known)
        end = line | attempt(case, here)
        os.write(pipe, (json.dumps(end) + "\n").encode())
    os._exit(0)


def _case(seed: int, k: int, here: Path, known: Mapping[str, Sequence[str]]) -> Case:
    rng = random.Random(f"{seed}-{k}")
    files = sorted((here / "files").iterdir())
    return made(rng, Values(rng, files, known))


def prepared(here: Path) -> dict[str, list[str]]:
    """Make the warehouse that cases begin with; texts of its tables by column."""
    os.chdir(here)
    for line in _WORLD:
        words = [w for part in line.split() for w in (sorted(map(str, here.glob(part))) or [part])]
        if status := main(words):
            raise SystemExit(f"plumbline {line} ends with status {status}")
    store = Store.open(here / "out" / "warehouse", create=False)
    known: dict[str, set[str]] = {"path": {str(here / "models" / "grams")}}
    for table in ("word_delta", "benchmark_pair", "pair_score", "model", "run", "metric_value"):
        rows = store.read(table)
        for column in set(rows.column_names) & set(_COLUMNS):
            known.setdefault(column, set()).update(rows[column].unique().to_pylist()[:30])
    known["model"].add(str(here / "models" / "grams"))
    return {name: sorted(filter(None, texts)) for name, texts in known.items()}


def _fresh(here: Path, seed: int) -> None:
    for name in ("warehouse", "files", "outside"):
        shutil.rmtree(here / name, ignore_errors=True)
    shutil.copytree(here / "out" / "warehouse", here / "warehouse")
    write_files(here / "files", random.Random(seed))
    (here / "outside").mkdir()
    (here / "outside" / "x").write_text("mine")


def fuzz(n_inputs: int, seed: int, first: int, here: Path) -> tuple[Counter[str], list[str]]:
    """How inputs to commands ended, by status, and what should not have been.

    ``here`` is an empty directory, or one of an earlier call, whose warehouse is taken again.
    """
    ends: Counter[str] = Counter()
    findings: list[str] = []
    for name in ("home", "tmp"):
        (here / name).mkdir(parents=True, exist_ok=True)
    for name in [n for n in os.environ if n.startswith(("PLUMBLINE", "HF_", "PREFECT"))]:
        del os.environ[name]
    os.environ |= {"HOME": str(here / "home"), "TMPDIR": str(here / "tmp")}
    os.environ |= {"HF_HUB_OFFLINE": "1", "COLUMNS": "200"}
    tempfile.tempdir, sys.dont_write_bytecode = None, True
    if not (here / "known.json").exists():
        _prepare_in_child(here)
    known = json.loads((here / "known.json").read_text())
    os.environ["PLUMBLINE_WAREHOUSE"] = str(here / "warehouse")
    # Once, not in each child, where a stop may leave one half imported.
    for name in (*map(_module, targets()), *_SLOW):
        import_module(name)
    k, last = first, first + n_inputs
    while k < last:
        _fresh(here, seed)
        n = min(_BATCH - k % _BATCH, last - k)
        k = _watched(seed, k, n, here, known, ends, findings)
        if (here / "outside" / "x").read_text() != "mine" or len(os.listdir(here / "outside")) != 1:
            findings.append(f"before input {k}: a file outside changed")
    os.chdir("/")
    return ends, findings


def _module(command: str) -> str:
    return class_of(command).__module__


def _prepare_in_child(here: Path) -> None:
    """``prepared`` in a process of its own: it starts threads, which no fork survives."""
    child = os.fork()
    if not child:
        status = 1
        try:
            (here / "known.json").write_text(json.dumps(prepared(here)))
            status = 0
        finally:
            os._exit(status)
    if os.waitpid(child, 0)[1]:
        raise SystemExit("the warehouse can't be made, see above")


def _watched(
    seed: int,
    first: int,
    n: int,
    here: Path,
    known: Mapping[str, Sequence[str]],
    ends: Counter[str],
    findings: list[str],
) -> int:
    """Run a batch in a child; the number of the input after the last one that ran."""
    read, write = os.pipe()
    child = os.fork()
    if not child:
        os.close(read)
        try:
            batch(seed, first, n, here, write, known)
        except BaseException:
            (here / "ended").write_text(traceback.format_exc())
        finally:
            os._exit(1)
    os.close(write)
    k, pending, buffer = first, False, b""
    while True:
        ready, _, _ = select.select([read], [], [], _WAIT_S + _STOP_S)
        data = os.read(read, 1 << 16) if ready else b""
        *lines, buffer = (buffer + data).split(b"\n")
        for line in lines:
            end = json.loads(line)
            pending = "found" not in end
            if pending:
                k = end["k"]
                continue
            ends[str(end["status"])] += 1
            for what in end["found"]:
                words = _shown(_case(seed, end["k"], here, known))
                findings.append(f"input {end['k']}: {what} <- {words}")
                print(f"FOUND {findings[-1]}", file=sys.stderr)
            if not ends.total() % 100:
                print(f"{ends.total():,} inputs, {dict(ends)}", file=sys.stderr, flush=True)
        if not data:
            break
    if not ready:
        os.kill(child, signal.SIGKILL)
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    os.close(read)
    if pending:
        kind = "could not be stopped" if not ready else f"ended the process with {status}"
        ends[kind] += 1
        if (here / "ended").exists():
            kind += f": {(here / 'ended').read_text()!r}"
            (here / "ended").unlink()
        findings.append(f"input {k}: {kind} <- {_shown(_case(seed, k, here, known))}")
        print(f"FOUND {findings[-1]}", file=sys.stderr, flush=True)
    return k + 1


def _shown(case: Case) -> str:
    text = f"{case.words} {case.variables or ''} {case.files or ''}"
    return text.encode("ascii", "backslashreplace").decode()[:600]
