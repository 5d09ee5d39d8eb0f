"""The pull step of `prefect.yaml`: sets the directory of a run, on the machine that runs it.

Prefect fills in environment variables of `prefect.yaml` at deployment, so a directory named by one
would be that of the deploying machine on every worker.
"""

from __future__ import annotations

import os

from plumbline.warehouse.errors import BadInput, UsageProblem

#: Variable that names the directory, as for a service, which has no PWD.
VARIABLE = "PLUMBLINE_DIRECTORY"


def worker_directory() -> dict[str, str]:
    """Enter the directory that ``PLUMBLINE_DIRECTORY`` names, else the one the worker started in.

    Raises ``UsageProblem`` when neither is known, ``BadInput`` when it can't be entered.
    """
    directory = os.environ.get(VARIABLE) or os.environ.get("PWD")
    if not directory:
        raise UsageProblem("the worker's directory", "is not known", f"set {VARIABLE}")
    try:
        os.chdir(directory)
    except OSError as e:
        raise BadInput(f"directory {directory}", e.strerror or "can't be entered") from e
    return {"directory": os.getcwd()}
