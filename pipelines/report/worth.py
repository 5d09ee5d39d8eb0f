"""What the sentences of a benchmark are worth, where our own frames are all they are."""

from __future__ import annotations

from plumbline.eval_workers.generation.offline import SOURCE, WORTH
from plumbline.pipelines.report.facts import Facts

_WRITTEN = "SELECT DISTINCT benchmark FROM benchmark_pair WHERE source_file = $1 ORDER BY 1"


def sentences(facts: Facts) -> list[str]:
    """A sentence a benchmark of the offline writer; frames of a closed world need none."""
    found = facts.connection.execute(_WRITTEN, [SOURCE]).fetchall()
    return [f"{benchmark}: {WORTH}" for (benchmark,) in found]
