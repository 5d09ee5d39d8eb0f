"""What Spark starts its Python workers by on one machine: Spark's own daemon, with one silence.

A task that is cancelled while its worker starts hangs up before it has said who it is, and Spark's
daemon prints a traceback of that. Errors of a worker at work don't come this way: they go to the
task, which tells of them.
"""

from __future__ import annotations

import socket

from pyspark import daemon

#: Of a worker that is to end.
_OVER = 1
_worker = daemon.worker


def worker(sock: socket.socket, authenticated: bool) -> int:
    """As ``pyspark.daemon.worker``; its exit status."""
    try:
        return _worker(sock, authenticated)
    except (EOFError, ConnectionError):
        if authenticated:
            raise
        return _OVER


if __name__ == "__main__":
    daemon.worker = worker
    daemon.manager()
