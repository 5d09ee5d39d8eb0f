"""Run the ``plumbline`` command. Print errors in one line; each kind has its own exit status.

Slow modules are imported inside functions, because ``stop_signals.listen`` must run early. Until
``listen`` has run, Ctrl-C prints a Python traceback.
"""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Sequence
from typing import Any, TextIO

from plumbline.pipelines.command import stop_signals

#: Variable that a shell sets to ask for completions.
_COMPLETE = "_PLUMBLINE_COMPLETE"
#: Maximum length of a printed error; the middle of a longer message is cut out.
_LONGEST = 2_000
_FIRST_STEPS = """\
Measure gender preferences of language models, and trace them to the text they were trained on.

A first report in minutes, from a made-up text whose leans are known:
  plumbline pipeline

Your own texts, models and sentence pairs:
  plumbline corpus pack texts --out my-texts.jsonl.zst                 a folder of .txt files
  plumbline pipeline --corpus my-texts.jsonl.zst --model train:small   count, train, score, report
  plumbline benchmark import my-pairs --source pairs.csv               with sentence_a, sentence_b
  plumbline score --model EleutherAI/pythia-70m --benchmark my-pairs   then: measure, report

Then ask:
  plumbline why nurse captain                                          why do these words lean?
  plumbline sql                                                        query all results in SQL

Every command: plumbline --help. Is something missing here? plumbline doctor
From Python: import plumbline. Documentation: docs/index.md"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command line and return its exit status. Print errors that aren't bugs in one line.

    Without arguments, prints commands to start with. Exit statuses: 2 wrong usage, 3 bad input,
    4 missing component, 5 interrupted, 6 a model changed more than `--fail-if` allows.
    """
    given = list(sys.argv[1:] if arguments is None else arguments)
    try:
        return _status(given)
    except BaseException as e:
        # After Ctrl-C, a library may raise an error other than KeyboardInterrupt.
        if stop_signals.received():
            stop_signals.complain()
            return stop_signals.STATUS
        if isinstance(e, KeyboardInterrupt):
            return _complain(stop_signals.LINE, stop_signals.STATUS)
        if not isinstance(e, Exception):
            raise
        return _of_error(e)


def _status(given: list[str]) -> int:
    if not given and _COMPLETE not in os.environ:
        from plumbline.warehouse.text.escape import say

        say(_FIRST_STEPS)
        return 0
    from plumbline.pipelines.command.app import app

    result = app(given, prog_name="plumbline", standalone_mode=False, obj=given)
    if result == 130:  # Typer's status after Ctrl-C
        raise KeyboardInterrupt
    return result if isinstance(result, int) else 0


def _of_error(error: Exception) -> int:
    import typer

    from plumbline.pipelines.environment_errors import one_line

    if isinstance(error, typer.Exit):
        return error.exit_code
    if isinstance(error, typer.Abort):
        return _complain(stop_signals.LINE, stop_signals.STATUS)
    if line := one_line(error):
        return _complain(str(line), line.exit_code)
    if not hasattr(error, "format_message"):  # a bug: Typer didn't raise this error
        raise error
    return _complain(error.format_message(), getattr(error, "exit_code", 2))


def _complain(message: str, status: int) -> int:
    from rich.console import Console

    from plumbline.warehouse.text.escape import say

    Console(stderr=True).print("[bold red]error:[/] ", end="")
    if len(message) > _LONGEST:  # some errors quote a long option
        message = f"{message[: _LONGEST // 2]} ... {message[-_LONGEST // 2 :]}"
    say(message or "wrong usage; add --help", err=True)
    return status


def entry() -> None:
    """Run `plumbline` in a terminal. Print warnings without their source file and line."""
    status = stop_signals.STATUS
    try:
        _open_streams()
        stop_signals.listen()
        import warnings

        from plumbline.warehouse.text.escape import say

        warnings.showwarning = lambda message, *_: say(f"warning: {message}", err=True)
        status = main()
    except BaseException:
        if not stop_signals.received():
            raise
        stop_signals.complain()
    stop_signals.leave(status)


def _open_streams() -> None:
    """Reopen closed standard streams, and ignore errors from writing to a closed pipe.

    A command must finish even if nobody reads its output. If standard output stayed closed, the
    next file to be opened would get file descriptor 1 and receive the printed text.
    """
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # opens the lowest free descriptor: ``number``
    sys.stdin = sys.stdin or open(0, encoding="utf-8", closefd=False)  # noqa: SIM115
    sys.stdout = _without_broken_pipe(sys.stdout, 1)
    sys.stderr = _without_broken_pipe(sys.stderr, 2)


def _without_broken_pipe(stream: TextIO | None, number: int) -> TextIO:
    return io.TextIOWrapper(
        io.BufferedWriter(_FileWithoutBrokenPipe(number, "w", closefd=False)),
        encoding=stream.encoding if stream else "utf-8",
        errors="backslashreplace",  # escape what the encoding can't represent
        line_buffering=number == 2 or os.isatty(number),
        write_through=number == 2,
    )


class _FileWithoutBrokenPipe(io.FileIO):
    def write(self, data: Any) -> int:
        try:
            return super().write(data)
        except BrokenPipeError:
            return memoryview(data).nbytes
