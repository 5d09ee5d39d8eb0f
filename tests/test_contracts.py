"""The checks that packages run on their parts: ours pass, and each kind of fault is found."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from plumbline import contracts
from plumbline.eval_workers.disclosure import closed_world_prompts as closed_world
from plumbline.eval_workers.fairpair import probe_prompts as prompts
from plumbline.warehouse.errors import PlumblineError
from plumbline.warehouse.query.connection import sql, sql_names
from tests.test_plugins import install

_NUMBERS = """
from plumbline.eval_workers.fairpair.numbers import combine, distances, means
DESCRIPTION, LANGUAGES = "characters", None
def items(texts): return [float(len(text)) for text in texts]
"""
_OTHER_MEANS = """import combine, distances
from plumbline.eval_workers.fairpair.phi import Means
def means(left, right): return Means(1.0, 1.0, float("nan"))"""
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
            return TextScore(float("nan"), problem="the text is empty")
        return TextScore(-1.0 * len(text), (1,) * len(text), (-1.0,) * len(text))
    def pieces(self, ids): return {i: "x" for i in ids}
def open_model(model, options): return Model()
"""
_WEATHER = """
from plumbline.eval_workers.pairs.benchmarks import Parsed
NAMES, DESCRIPTION, DEFAULT_LOCATION = ("mine",), "weather", None
def read(name, source):
    parsed = Parsed(name)
    parsed.add(pair_id="1", template="{pronoun} ran.", source_file="f", source_row=1)
    return parsed
"""
_TOPICS = """
description = "d"
source = "s"
[hobby]
template = "My friend likes {}, and"
words = ["chess", "opera"]
"""
_SECTION = """
{% set pairs = query("FROM scored_pair") %}
{% if pairs %}
# mine: Mine

{{ table("Pairs", pairs, ["pair_id"]) }}
{% else %}
{{ missing("Mine", "plumbline score") }}
{% endif %}
"""
_TABLE = """
from plumbline.warehouse.schema.columns import tables
TABLES = tables('''
mine: One.
by: mine
key: word /
    word
    n_word: int [tokens] -- n
''')
"""
_VIEW = """CREATE OR REPLACE VIEW mine AS
SELECT corpus, sum(n_word) AS n FROM word_count GROUP BY ALL;
"""
_WORDS = {"word_count": [{"corpus": "c", "word": w, "n_word": 1} for w in ("rum", "tea")]}
GROUPS = {
    "tables": (_TABLE, ".py", contracts.check_table),
    "views": (_VIEW, ".sql", lambda name: contracts.check_view(name, _WORDS)),
    "scoring_functions": (_NUMBERS, ".py", contracts.check_scoring_function),
    "backends": (_UNIFORM, ".py", lambda name: contracts.check_backend(name, "m", ["a b", "c"])),
    "benchmarks": (_WEATHER, ".py", contracts.check_benchmark),
    "metrics": (sql("metrics/n"), ".sql", contracts.check_metric),
    "disclosure_prompts": (_TOPICS, ".toml", contracts.check_disclosure_prompts),
    "report_sections": (_SECTION, ".jinja", contracts.check_report_section),
}


@pytest.mark.parametrize("name", [name.partition("/")[2] for name in sql_names("metrics")])
def test_our_metrics_keep_the_contract(name: str) -> None:
    assert contracts.check_metric(name)


@pytest.mark.parametrize("name", ["methods", "preference", "words"])  # those of scored pairs alone
def test_our_sections_keep_the_contract(name: str) -> None:
    contracts.check_report_section(name)


def test_our_prompts_keep_the_contracts() -> None:
    for name in ("topics", *closed_world.SETS):
        assert contracts.check_disclosure_prompts(name)
    for name in prompts.PROBE_SETS.names():
        assert contracts.check_fairpair_prompts(name)


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
        ("scoring_functions", "import combine, distances, means", _OTHER_MEANS, r"means\(\) has"),
        ("backends", "-1.0 * len(text), (1,)", "-1.5 * len(text), (1,)", "is not a sum of tokens"),
        ("backends", "(-1.0,) * len(text))", "(-1.0,) * len(text), 'no')", "has no score: no"),
        (
            *("backends", "-1.0 * len(text), (1,) * len(text), (-1.0,)"),
            *("-len(text) * self.calls, (1,) * len(text), (-1.0 * self.calls,)",),
            "depends on the others",
        ),
        ("backends", "if not text", "if text is None", "an empty text has no score"),
        ("backends", '"mine"', '"other"', "names the backend other"),
        ("backends", "for i in ids", "for i in ()", "the text of every token"),
        ("benchmarks", '"weather"', '""', "DESCRIPTION is one line"),
        ("metrics", "-- grain: ", "-- ", "says the grain"),
        ("tables", "-- n", "", "'mine' of parts 1.2: .*KeyError: 'n_word:'"),
        ("tables", "key: word", "key: none word", "'mine' of parts 1.2: .*KeyError: 'none'"),
        ("tables", "mine: One", "yours: One", r"'mine' of parts 1.2: its module declares yours"),
        ("views", "corpus, ", "", "an empty warehouse gives it rows"),
        ("views", "n_word", "n_wrd", r"'mine' of parts 1.2: .*BinderException"),
        ("report_sections", "plumbline score", "score", "names no command"),
        ("report_sections", "pairs, [", "Rows(pairs), [", "does not show its query"),
        ("disclosure_prompts", "chess", "his chess", "'his'"),
    ],
)
def test_a_fault_is_found(
    *,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    group: str,
    old: str,
    new: str,
    message: str,
) -> None:
    with pytest.raises((AssertionError, PlumblineError), match=message):
        check(tmp_path, monkeypatch, group, old, new)
