"""Reads JSON of other tools' logs, and the values at a path in it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from plumbline.warehouse.errors import BadInput


def at(document: Any, *path: str | int) -> Any:
    """The value at a path of keys and positions; ``None`` if the path leads nowhere.

    >>> at({"a": [{"b": 1}]}, "a", 0, "b"), at({"a": 1}, "a", "b")
    (1, None)
    """
    value = document
    for key in path:
        if isinstance(key, str):
            value = value.get(key) if isinstance(value, dict) else None
        else:
            value = value[key] if isinstance(value, list) and 0 <= key < len(value) else None
    return value


def json_document(path: Path, fix: str = "mend or remove it") -> Any:
    """The content of a JSON file. Raises ``BadInput`` with ``fix`` if it can't be read."""
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as e:
        raise BadInput(f"{path}", f"can't be read as JSON: {e}", fix) from e
