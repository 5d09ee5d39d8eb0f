"""A child process that reads other people's files with limits and without a network.

A Parquet file can crash the library that reads it, or unpack to any size.
"""

from __future__ import annotations

import ctypes
import os
import platform
import resource
import signal
from contextlib import suppress

from plumbline.warehouse.errors import BadInput, Interrupted, MissingComponent

#: Most address space, and most bytes of a written file.
MOST_BYTES = 8 << 30
#: Most seconds of processor time of a whole command.
MOST_SECONDS = 600
#: Most cores of the process: each thread reserves address space.
_MOST_CORES = 4
#: Processor -> its number in seccomp, and the number of its system call ``socket``.
_PROCESSORS = {"x86_64": (0xC000003E, 41), "aarch64": (0xC00000B7, 198)}
_IO_URING_SETUP = 425  # on all processors; it can make sockets too
#: On x86_64, each system call has a second number (x32), which is higher by this offset.
_X32 = 0x40000000
#: Signals that a person sends, or a system that lacks memory; a crash never ends with them.
_KILLS = (signal.SIGKILL, signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
_PR_SET_PDEATHSIG, _PR_SET_SECCOMP, _PR_SET_NO_NEW_PRIVS, _FILTER = 1, 22, 38, 2
_EACCES = 0x00050000 | 13


def status_of_child() -> int | None:
    """Fork: ``None`` in the child; in the parent, the child's exit status once it has ended.

    The child is in the sandbox and ends with the parent. Call this while no other thread runs. The
    parent raises ``BadInput`` if the child crashed or reached a limit, ``Interrupted`` if it was
    killed, ``MissingComponent`` on a system without a sandbox.
    """
    processor()
    parent = os.getpid()
    child = os.fork()
    if not child:
        end_with(parent)
        limit()
        limit_time(MOST_SECONDS)
        close_network()
        return None
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the terminal sends it to the child as well
    signal.signal(signal.SIGTERM, lambda *_: os.kill(child, signal.SIGTERM))
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    if -status in _KILLS and not _is_out_of_time():
        name = signal.Signals(-status).name
        raise Interrupted("sandbox", f"was killed by {name}", "run the same command again")
    if status < 0:
        limits = f"{MOST_BYTES >> 30} GiB of memory or {MOST_SECONDS // 60} minutes of a processor"
        problem = f"signal {-status} ended it: a file crashed it, or it needs more than {limits}"
        raise BadInput("sandbox", problem, "`plumbline warehouse check` names bad files")
    return status


def _is_out_of_time() -> bool:
    """True if children reached the hard limit of processor time, at which the system kills them."""
    hard = resource.getrlimit(resource.RLIMIT_CPU)[1]
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return hard != resource.RLIM_INFINITY and used.ru_utime + used.ru_stime > hard - 1


def end_with(parent: int) -> None:
    """Let Linux kill this process when its parent, the process ``parent``, ends."""
    if platform.system() == "Linux":
        _prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:  # the parent has ended already
            os._exit(1)


def limit() -> None:
    """Limit this process's memory, cores and sizes of written files; it can't raise them again."""
    for kind in (resource.RLIMIT_AS, resource.RLIMIT_FSIZE):
        _lower(kind, MOST_BYTES)
    _lower(resource.RLIMIT_CORE, 0)
    with suppress(AttributeError):  # this system lacks the call
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:_MOST_CORES])


def limit_time(seconds: int) -> None:
    """Let the system end this process after ``seconds`` more of processor time."""
    signal.signal(signal.SIGXCPU, signal.SIG_DFL)
    used = resource.getrusage(resource.RUSAGE_SELF)
    _lower(resource.RLIMIT_CPU, int(used.ru_utime + used.ru_stime) + seconds, is_final=False)


def close_network() -> None:
    """Forbid this process and its later children to open sockets; this can't be undone.

    Raises ``MissingComponent`` on a system that can't do this.
    """
    arch, socket = processor()
    loads, equals, above, ends = 0x20, 0x15, 0x35, 0x06
    program = [
        (loads, 0, 0, 4),  # the processor
        (equals, 0, 4, arch),
        (loads, 0, 0, 0),  # the call
        (above, 2, 0, _X32),
        (equals, 1, 0, socket),
        (equals, 0, 1, _IO_URING_SETUP),
        (ends, 0, 0, _EACCES),
        (ends, 0, 0, 0x7FFF0000),  # allowed
    ]
    listed = (_Instruction * len(program))(*(_Instruction(*fields) for fields in program))
    _prctl(_PR_SET_NO_NEW_PRIVS, 1)
    _prctl(_PR_SET_SECCOMP, _FILTER, ctypes.byref(_Program(len(program), listed)))


def processor() -> tuple[int, int]:
    """Seccomp's number of this processor, and the number of its system call ``socket``.

    Raises ``MissingComponent`` on a system without a sandbox.

    >>> len(processor()) if platform.system() == "Linux" else 2
    2
    """
    numbers = _PROCESSORS.get(platform.machine())
    if platform.system() != "Linux" or numbers is None:
        raise MissingComponent("sandbox", "needs Linux on x86_64 or aarch64")
    return numbers


class _Instruction(ctypes.Structure):
    _fields_ = (
        ("code", ctypes.c_uint16),
        ("if_true", ctypes.c_uint8),
        ("if_false", ctypes.c_uint8),
        ("value", ctypes.c_uint32),
    )


class _Program(ctypes.Structure):
    _fields_ = (("n", ctypes.c_uint16), ("instructions", ctypes.POINTER(_Instruction)))


def _prctl(option: int, *arguments: object) -> None:
    library = ctypes.CDLL(None, use_errno=True)
    numbers = [ctypes.c_ulong(value) if isinstance(value, int) else value for value in arguments]
    zeros = [ctypes.c_ulong(0)] * (4 - len(arguments))
    if library.prctl(option, *numbers, *zeros):
        raise MissingComponent("sandbox", os.strerror(ctypes.get_errno()), "allow seccomp")


def _lower(kind: int, most: int, *, is_final: bool = True) -> None:
    hard = resource.getrlimit(kind)[1]
    if hard != resource.RLIM_INFINITY:
        most = min(most, hard)
    resource.setrlimit(kind, (most, most if is_final else hard))
