"""Saved state of a stopped run: tensors and plain values."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch


def save_state(state: Mapping[str, Any], path: Path) -> None:
    """``torch.save`` to a file; raises ``OSError`` for a full disk, which torch would hide."""
    try:
        with path.open("wb") as file:
            torch.save(state, file)
    except RuntimeError as e:
        if isinstance(e.__context__, OSError):
            raise e.__context__ from None
        raise
