"""The notebook of docs runs from its first cell to the last, as it stands."""

from __future__ import annotations

import os
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

from tests.conftest import REPOSITORY


@pytest.mark.slow
def test_the_notebook_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In a Jupyter without ipywidgets, as `pip install jupyterlab` alone may leave it."""
    path = REPOSITORY / "docs/notebooks/own-pairs.ipynb"
    hidden = "import sys\nsys.modules['ipywidgets'] = None\n"
    (tmp_path / "sitecustomize.py").write_text(hidden, encoding="utf-8")
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join((str(tmp_path), str(REPOSITORY))))
    notebook = nbformat.read(path, as_version=4)
    kept = [shown(cell) for cell in notebook.cells]
    NotebookClient(notebook, timeout=600, resources={"metadata": {"path": tmp_path}}).execute()
    for cell, before in zip(notebook.cells, kept, strict=True):
        said = "".join(output.get("text", "") for output in cell.get("outputs", []))
        is_warned = '"broken"' in cell["source"]  # of rows that can't be used
        assert "error:" not in said and ("Warning" in said) is is_warned, (cell["source"], said)
        # tables are the same again: texts, models and draws are by seed
        assert shown(cell) == before, cell["source"]


def shown(cell: nbformat.NotebookNode) -> list[str]:
    """The frames that a cell shows, as text; what progress leaves behind is empty."""
    data = [output.get("data", {}) for output in cell.get("outputs", [])]
    return [d["text/plain"] for d in data if "text/html" in d and d["text/plain"]]
