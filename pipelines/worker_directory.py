"""The pull step of `prefect.yaml`: sets the directory of a run, on the machine that runs it.

Prefect replaces environment variables in `prefect.yaml` at deployment, so a variable there would
give every worker the directory of the deploying machine.
"""

from __future__ import annotations

import os

from plumbline.warehouse.errors import BadInput, UsageProblem

#: Environment variable that names the directory; a service needs it, since it has no PWD.
VARIABLE = "PLUMBLINE_DIRECTORY"


def worker_directory() -> dict[str, str]:
    """Enter the directory in ``PLUMBLINE_DIRECTORY``, or else in PWD, where the worker started.

    Raises ``UsageProblem`` if neither variable is set, ``BadInput`` if it can't be entered.
    """
    directory = os.environ.get(VARIABLE) or os.environ.get("PWD")
    if not directory:
        raise UsageProblem("the worker's directory", "is not known", f"set {VARIABLE}")
    try:
        os.chdir(directory)
    except OSError as e:
        raise BadInput(f"directory {directory}", e.strerror or "can't be entered") from e
    return {"directory": os.getcwd()}
