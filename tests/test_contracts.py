"""The checks that packages run on their parts: ours pass, and each kind of fault is found."""

import sys
from pathlib import Path

import pytest

from plumbline import contracts
from plumbline.warehouse.errors import PlumblineError
from tests.test_plugins import install

_NUMBERS = """
from plumbline.eval_workers.fairpair.phi.vader import combine, distances
DESCRIPTION, LANGUAGES = "characters", None
def items(texts): return [float(len(text)) for text in texts]
"""
_UNIFORM = """
from plumbline.eval_workers.models.scoring_contract import Identity, TextScore
class Model:
    identity = Identity("m", "r", "mine", "1", "float64", "none is needed", 0)
    n_parameters = 1
    calls = 0
    def score(self, texts):
        self.calls += 1
        return [self.one(text) for text in texts]
    def one(self, text):
        if not text:
            return TextScore(problem="the text is empty")
        return TextScore(-1.0 * len(text), (1,) * len(text), (-1.0,) * len(text))
def open_model(model, options): return Model()
"""
GROUPS = {
    "scoring_functions": (_NUMBERS, ".py", contracts.check_scoring_function),
    "backends": (_UNIFORM, ".py", lambda name: contracts.check_backend(name, "m", ["a b", "c"])),
}


def check(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, group: str, old: str, new: str
) -> object:
    """Check a part of another package, with a change in its text."""
    text, suffix, checked = GROUPS[group]
    assert old in text
    package = f"parts_{tmp_path.name.replace('-', '_')}"
    (tmp_path / package).mkdir()
    (tmp_path / package / "__init__.py").write_text("")
    (tmp_path / package / f"mine{suffix}").write_text(text.replace(old, new))
    value = f"{package}.mine" if suffix == ".py" else package
    install(tmp_path, "parts", f"[plumbline.{group}]\nmine = {value}\n")
    monkeypatch.syspath_prepend(tmp_path)
    try:
        return checked("mine")
    finally:
        for name in [name for name in sys.modules if name.startswith(package)]:
            del sys.modules[name]


@pytest.mark.parametrize("group", GROUPS)
def test_a_part_of_another_package_passes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, group: str
) -> None:
    check(tmp_path, monkeypatch, group, "", "")


@pytest.mark.parametrize(
    ("group", "old", "new", "message"),
    [
        ("scoring_functions", "for text in texts", "for text in texts[1:]", "one item per text"),
        ("scoring_functions", "float(len(text))", "-1.0 if text else float('nan')", "0 or more"),
        ("backends", "-1.0 * len(text), (1,)", "-1.5 * len(text), (1,)", "is not a sum of tokens"),
        ("backends", "(-1.0,) * len(text))", "(-1.0,) * len(text), 'no')", "has no score: no"),
        (
            *("backends", "-1.0 * len(text), (1,) * len(text), (-1.0,)"),
            *("-len(text) * self.calls, (1,) * len(text), (-1.0 * self.calls,)",),
            "depends on the others",
        ),
        ("backends", "if not text", "if text is None", "an empty text has the score NaN"),
        ("backends", '"mine"', '"other"', "names the backend other"),
    ],
)
def test_a_fault_is_found(
    *, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, group: str, old: str, new: str, message: str
) -> None:
    with pytest.raises((AssertionError, PlumblineError), match=message):
        check(tmp_path, monkeypatch, group, old, new)
