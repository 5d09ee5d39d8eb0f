"""Tensors and plain values of a stopped run, written so that a full disk is reported as one."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch


def save_state(state: Mapping[str, Any], path: Path) -> None:
    """``torch.save`` to a file. Raises ``OSError`` where the disk refuses.

    By itself, torch then speaks of unexpected positions.
    """
    try:
        with path.open("wb") as file:
            torch.save(state, file)
    except RuntimeError as e:
        if isinstance(e.__context__, OSError):
            raise e.__context__ from None
        raise
