"""All commands, of Plumbline and of other packages, by name; listing them imports none.

Another package adds a command by a class and a line of its ``pyproject.toml``::

    [project.entry-points."plumbline.commands"]
    "corpus tidy" = "my_package.tidy:Tidy"
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from importlib import resources, util
from importlib.resources.abc import Traversable
from inspect import cleandoc

from plumbline.warehouse.plugins import Registry

_PACKAGE = "plumbline.pipelines.commands"
#: Matches the name and docstring of a command's class; parsing all modules would take longer.
_CLASS = re.compile(
    r'^class ([A-Z]\w*)\([^)]*\bCommand,?\s*\):\n    """(.*?)(?:\n\n|""")', re.M | re.S
)
#: Groups, and the commands of large ones, as a new user meets them; all others come after these.
ORDER = {
    **dict.fromkeys(("look", "pipeline"), ""),
    "corpus": "count associate list words concordance pack import demo",
    "why": "",
    "benchmark": "import show build constrain export import-ratings",
    **dict.fromkeys(("score", "train", "fairpair"), ""),
    "disclosure": "prompts probe sweep tune",
    **dict.fromkeys(("measure", "report", "reproduce", "sql", "runs", "warehouse", "doctor"), ""),
}
_ABOUT = re.compile(r'"""`plumbline [^`]*`: (.*?)(?:\n\n|""")', re.S)
#: Help of a group whose commands all come from other packages.
_OTHERS = "Commands of other packages."


def name_of(kind: type) -> str:
    """A command's name, from its module and class.

    >>> from plumbline.pipelines.commands.corpus.counting_corpora import Count
    >>> name_of(Count)
    'corpus count'
    """
    module, name = kind.__module__, kind.__name__
    names = (known for known, target in targets().items() if target == f"{module}:{name}")
    return next(names, kind_name(module.removeprefix(f"{_PACKAGE}.").partition(".")[0], name))


def kind_name(group: str, kind: str) -> str:
    """The command of class ``kind`` in the file or folder of a group.

    The group's name at the start of a class name, as in ``ScoreImport``, is left out.

    >>> kind_name("score", "Score"), kind_name("score", "ScoreImport")
    ('score', 'score import')
    >>> kind_name("benchmark", "ImportRatings")
    'benchmark import-ratings'
    """
    words = "".join(f"-{c.lower()}" if c.isupper() else c for c in kind).strip("-")
    return group if words == group else f"{group} {words.removeprefix(f'{group}-')}"


@cache
def targets() -> dict[str, str]:
    """Name -> ``module:Class`` of all commands, in the order of the help."""
    ours = {
        kind_name(module.partition(".")[0], kind): f"{_PACKAGE}.{module}:{kind}"
        for module, source in _sources().items()
        for kind, _ in _CLASS.findall(source)
    }
    others = Registry("command", group="plumbline.commands", made=tuple(ours))
    theirs = {name: others.find(name) for name in others.added}
    commands = ours | {name: entry.value for name, entry in theirs.items() if entry is not None}
    return dict(sorted(commands.items(), key=lambda one: _place(one[0])))


def _place(command: str) -> tuple[int, int]:
    group, _, name = command.partition(" ")
    names = ORDER.get(group, "").split()
    of_name = names.index(name) if name in names else len(names)
    return [*ORDER, group].index(group), of_name


def summary(name: str) -> str:
    """Purpose of a command or group: the first paragraph of its docstring, read from the source.

    >>> summary("corpus count"), summary("warehouse")
    ('Count words and their co-occurrences with target words.', 'Check, compact, and earlier \
versions.')
    """
    if name not in targets():
        match = _ABOUT.match(_sources().get(name, ""))
        return cleandoc(match[1][:1].upper() + match[1][1:]) if match else _OTHERS
    module, _, kind = targets()[name].partition(":")
    if (source := _sources().get(module.removeprefix(f"{_PACKAGE}."))) is None:
        spec = util.find_spec(module)
        source = spec.loader.get_source(module) if spec else ""  # type: ignore[union-attr]
    return next((cleandoc(text) for name, text in _CLASS.findall(source or "") if name == kind), "")


@cache
def _sources() -> dict[str, str]:
    """Source by module below ``commands``, such as ``corpus.words``; of a folder its docstring."""
    folder = resources.files("plumbline.pipelines").joinpath("commands")
    return {
        ".".join((*place, file.name.removesuffix(".py"))).removesuffix(".__init__"): text
        for place, file in _files(folder)
        if (text := file.read_text("utf-8"))
    }


def _files(folder: Traversable, *place: str) -> Iterator[tuple[tuple[str, ...], Traversable]]:
    for entry in sorted(folder.iterdir(), key=lambda entry: entry.name):
        if entry.is_dir():
            yield from _files(entry, *place, entry.name)
        elif entry.name.endswith(".py"):
            yield place, entry
