"""The pull step of `prefect.yaml`: where a run starts, said by the machine that it runs on.

Prefect puts variables of the environment into `prefect.yaml` when it is deployed, which would make
one machine's path that of all.
"""

from __future__ import annotations

import os

from plumbline.warehouse.errors import BadInput, UsageProblem

#: Names the directory where a shell's PWD is not it, such as in a service.
VARIABLE = "PLUMBLINE_DIRECTORY"


def worker_directory() -> dict[str, str]:
    """Enter the directory that the worker was started in, or that ``PLUMBLINE_DIRECTORY`` names.

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
