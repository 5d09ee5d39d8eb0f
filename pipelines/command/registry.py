"""List the commands of Plumbline and of other packages, without importing the commands.

To add a command from another package, define its class and add this to ``pyproject.toml``::

    [project.entry-points."plumbline.commands"]
    "corpus tidy" = "my_package.tidy:Tidy"
"""

from __future__ import annotations

import re
from functools import cache
from importlib import util
from inspect import cleandoc

from plumbline.warehouse.plugins import Registry

#: Module (in ``pipelines.commands``) and class of each command, in the order of the help.
_OURS = {
    "look": "model_commands.look:Look",
    "pipeline": "pipeline:Pipeline",
    "corpus count": "corpus:Count",
    "corpus associate": "corpus:Associate",
    "corpus list": "corpus:CorpusList",
    "corpus words": "corpus_words:CorpusWords",
    "corpus concordance": "corpus_words:Concordance",
    "corpus pack": "corpus:Pack",
    "corpus import": "corpus:CorpusImport",
    "corpus demo": "corpus:Demo",
    "why": "why:Why",
    "benchmark import": "benchmark:BenchmarkImport",
    "benchmark show": "benchmark:BenchmarkShow",
    "benchmark build": "benchmark:BenchmarkBuild",
    "benchmark constrain": "benchmark:Constrain",
    "benchmark export": "benchmark:BenchmarkExport",
    "benchmark import-ratings": "benchmark:ImportRatings",
    "score": "model_commands.score:Score",
    "score import": "model_commands.score:ScoreImport",
    "score choose": "model_commands.score:Choose",
    "train": "model_commands.train:Train",
    "fairpair run": "model_commands.fairpair:FairpairRun",
    "fairpair score": "model_commands.fairpair:FairpairScore",
    "disclosure prompts": "model_commands.disclosure_prompts:Prompts",
    "disclosure probe": "model_commands.disclosure_probe:Probe",
    "disclosure sweep": "model_commands.disclosure_sweep:Sweep",
    "disclosure tune": "model_commands.disclosure_tune:Tune",
    "measure": "measure:Measure",
    "report": "report:Report",
    "report figure": "report:ReportFigure",
    "report table": "report:ReportTable",
    "reproduce": "reproduce:Reproduce",
    "reproduce lists": "reproduce:Lists",
    "sql": "sql:Sql",
    "runs": "warehouse:Runs",
    "warehouse check": "warehouse:Check",
    "warehouse compact": "warehouse:Compact",
    "warehouse restore": "warehouse:Restore",
    "doctor": "doctor:Doctor",
}
#: Help of groups that are not commands themselves.
_GROUPS = {
    "corpus": "Count words in texts, compute their leans, and sample seed words.",
    "benchmark": "Import, build, filter and share sentence pairs.",
    "fairpair": "Test if continuations about John and Jane differ by more than sampling noise.",
    "disclosure": "Measure which gender models assume when none is given.",
    "warehouse": "Check, compact or restore the warehouse.",
}


@cache
def targets() -> dict[str, str]:
    """Return a dict from each command's name to its ``module:Class``, in the order of the help."""
    found = {name: f"plumbline.pipelines.commands.{target}" for name, target in _OURS.items()}
    others = Registry("command", group="plumbline.commands", made=tuple(found))
    for name in others.added:
        if (entry := others.find(name)) is not None:
            found[name] = entry.value
    groups = list(dict.fromkeys(name.split()[0] for name in found))
    return dict(sorted(found.items(), key=lambda one: groups.index(one[0].split()[0])))


def name_of(kind: type) -> str:
    """Return the name of the command that a class defines.

    >>> from plumbline.pipelines.commands.corpus import Count
    >>> name_of(Count)
    'corpus count'
    """
    target = f"{kind.__module__}:{kind.__name__}"
    return next((name for name, known in targets().items() if known == target), kind.__name__)


def summary(name: str) -> str:
    """Return the help of a group, or the first paragraph of a command's docstring.

    >>> summary("corpus count"), summary("warehouse")
    ('Count words and their co-occurrences with target words.', 'Check, compact or restore \
the warehouse.')
    """
    if name not in targets():
        return _GROUPS.get(name, "Run commands that other packages add.")
    module, _, kind = targets()[name].partition(":")
    spec = util.find_spec(module)
    source = spec.loader.get_source(module) if spec else ""  # type: ignore[union-attr]
    text = re.search(
        rf'^class {kind}\([^)]*\):\n    """(.*?)(?:\n\n|""")', source or "", re.M | re.S
    )
    return cleandoc(text[1]) if text else ""
