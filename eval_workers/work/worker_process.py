"""A further worker process of a command: computes chunks and publishes nothing."""

from __future__ import annotations

import os
import sys
import threading
from functools import partial

from plumbline.eval_workers.work.helpers import Job
from plumbline.eval_workers.work.runner import opened, plan_of
from plumbline.warehouse.errors import Interrupted, PlumblineError
from plumbline.warehouse.storage.store import Store


def help_steps(job: Job) -> None:
    """Compute chunks until none is left; another process publishes their rows."""
    store = Store.open(job.warehouse, create=False)
    with opened(store, job.model, job.options) as backend:
        for step in job.steps:
            plan = plan_of(store, backend, step, step.state(store, backend))
            plan.work(partial(step.compute, backend), lambda n_left: None)


def main() -> int:
    """Run the job on standard input; returns the exit status."""
    job = Job.from_json(sys.stdin.buffer.readline())
    threading.Thread(target=_leave_with_the_command, daemon=True).start()
    try:
        help_steps(job)
    except PlumblineError as e:
        print(e, file=sys.stderr)
        return e.exit_code
    except KeyboardInterrupt:
        return Interrupted.exit_code
    return 0


def _leave_with_the_command() -> None:
    while os.read(sys.stdin.fileno(), 1):
        pass
    os._exit(Interrupted.exit_code)


if __name__ == "__main__":
    sys.exit(main())
