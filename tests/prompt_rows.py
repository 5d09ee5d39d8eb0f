"""Made-up sets of neutral prompts and lists of paired words, for the tests of disclosure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from plumbline.warehouse.storage.store import Store


def put_prompts(
    store: Store,
    name: str,
    prompts: Sequence[str],
    counterparts: Sequence[str] | None = None,
    topics: Sequence[str | None] | None = None,
) -> None:
    """Make ``prompts`` the set of that name, with identifiers `00`, `01` and so on."""
    nothing = [None] * len(prompts)
    shared = {"probe_set": name, "language": "en", "source_file": f"{name}.txt", "run_id": "r"}
    rows = [
        {**shared, "prompt_id": f"{i:02}", "prompt": prompt, "source_row": i + 1}
        | {"perturbed_prompt": other, "topic": topic}
        for i, (prompt, other, topic) in enumerate(
            zip(prompts, counterparts or nothing, topics or nothing, strict=True)
        )
    ]
    store.replace("probe_prompt", rows, {"probe_set": name}, "r")


def list_file(path: Path, pairs: Iterable[tuple[str, str]]) -> str:
    """Write a list of pairs, female and male, each of weight 1; returns its path."""
    rows = ", ".join(f'{{ female = "{f}", male = "{m}", weight = 1.0 }}' for f, m in pairs)
    path.write_text(f'description = "d"\nsource = "s"\npairs = [{rows}]\n', encoding="utf-8")
    return str(path)
