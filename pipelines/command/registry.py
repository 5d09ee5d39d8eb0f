"""All commands, of Plumbline and of other packages, by name; listing them imports none.

Another package adds a command by a class and a line of its ``pyproject.toml``::

    [project.entry-points."plumbline.commands"]
    "corpus tidy" = "my_package.tidy:Tidy"
"""

from __future__ import annotations

import re
from functools import cache
from importlib import resources, util
from inspect import cleandoc

from plumbline.warehouse.plugins import Registry

_PACKAGE = "plumbline.pipelines.commands"
#: Matches the name and docstring of a command's class; parsing all modules would take longer.
_CLASS = re.compile(
    r'^class ([A-Z]\w*)\([^)]*\bCommand,?\s*\):\n    """(.*?)(?:\n\n|""")', re.M | re.S
)
#: Groups in the order in which a new user meets them; other groups come after these.
ORDER = (
    *("pipeline", "corpus", "why", "benchmark", "score", "train", "fairpair"),
    *("disclosure", "measure", "report", "reproduce", "sql", "runs", "warehouse", "doctor"),
)
_ABOUT = re.compile(r'"""`plumbline [^`]*`: (.*?)(?:\n\n|""")', re.S)
#: Help of a group whose commands all come from other packages.
_OTHERS = "Commands of other packages."


def name_of(kind: type) -> str:
    """A command's name, from its module and class.

    >>> from plumbline.pipelines.commands.corpus import Count
    >>> name_of(Count)
    'corpus count'
    """
    module, name = kind.__module__, kind.__name__
    names = (known for known, target in targets().items() if target == f"{module}:{name}")
    return next(names, kind_name(module.rpartition(".")[2], name))


def kind_name(stem: str, kind: str) -> str:
    """The command of class ``kind`` in the file ``stem``; large groups have files `GROUP__PART`.

    The group's name at the start of a class name, as in ``ScoreImport``, is left out.

    >>> kind_name("score", "Score"), kind_name("score", "ScoreImport")
    ('score', 'score import')
    >>> kind_name("corpus__texts", "Pack"), kind_name("benchmark", "ImportRatings")
    ('corpus pack', 'benchmark import-ratings')
    """
    words = "".join(f"-{c.lower()}" if c.isupper() else c for c in kind).strip("-")
    group = stem.partition("__")[0].replace("_", "-")
    return group if words == group else f"{group} {words.removeprefix(f'{group}-')}"


@cache
def targets() -> dict[str, str]:
    """Name -> ``module:Class`` of all commands, in the order of the help."""
    ours = {
        kind_name(stem, kind): f"{_PACKAGE}.{stem}:{kind}"
        for stem, source in _sources().items()
        for kind, _ in _CLASS.findall(source)
    }
    others = Registry("command", group="plumbline.commands", made=tuple(ours))
    theirs = {name: others.find(name) for name in others.added}
    commands = ours | {name: entry.value for name, entry in theirs.items() if entry is not None}
    place = {name: rank for rank, name in enumerate(ORDER)}
    return dict(sorted(commands.items(), key=lambda one: place.get(one[0].split()[0], len(ORDER))))


def summary(name: str) -> str:
    """Purpose of a command or group: the first paragraph of its docstring, read from the source.

    >>> summary("corpus count"), summary("runs")
    ('Count words and their co-occurrences with target words.', 'List and show the runs of a \
warehouse.')
    """
    if name not in targets():
        match = _ABOUT.match(_sources().get(name.replace("-", "_"), ""))
        return cleandoc(match[1][:1].upper() + match[1][1:]) if match else _OTHERS
    module, _, kind = targets()[name].partition(":")
    spec = util.find_spec(module)
    source = spec.loader.get_source(module) if spec else ""  # type: ignore[union-attr]
    return next((cleandoc(text) for name, text in _CLASS.findall(source or "") if name == kind), "")


@cache
def _sources() -> dict[str, str]:
    folder = resources.files("plumbline.pipelines").joinpath("commands")
    names = sorted(f.name for f in folder.iterdir() if f.name.endswith(".py") and f.name[0] != "_")
    return {name.removesuffix(".py"): (folder / name).read_text("utf-8") for name in names}
