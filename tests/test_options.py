"""Options declared once: the same checks for a command, a file and code; every command has them."""

from __future__ import annotations

import ast
import re
from dataclasses import fields
from typing import get_args

import pytest

from plumbline.eval_workers.models.model_options import OF_SCORES, ModelOptions
from plumbline.jobs.kernel.cooccurrences import RULES
from plumbline.jobs.kernel.corpus_options import CorpusOptions, Rule
from plumbline.pipelines.command.base import class_of, parameters
from plumbline.pipelines.command.main import main
from plumbline.warehouse.options import words
from tests.conftest import REPOSITORY

#: Commands that load a model, and options of one that they don't take.
_LOADING = {
    "score": (),
    "fairpair run": OF_SCORES,
    "disclosure probe": OF_SCORES,
    "disclosure sweep": OF_SCORES,
    "disclosure tune": ("base_url", "concurrency", *OF_SCORES, "adapter", "tensor_parallel"),
}


@pytest.mark.parametrize("command", _LOADING)
def test_every_command_that_loads_a_model_takes_its_options(
    command: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    assert main([*command.split(), "--help"]) == 0
    hidden = (*_LOADING[command], *class_of(command).settings_only)
    shown = set(re.findall(r"--[a-z-]+", capsys.readouterr().out))
    for field in fields(ModelOptions):
        option = f"--{field.name.replace('_', '-')}"
        assert (option in shown) == (field.name not in hidden), option


def test_words_of_options_make_the_same_options() -> None:
    chosen = ModelOptions(dtype="float16", batch_tokens=9, per_token=True, adapter="a b")
    assert words(chosen) == [
        *("--dtype", "float16", "--batch-tokens", "9", "--adapter", "a b", "--per-token")
    ]


def test_the_type_of_weights_is_declared_in_one_place() -> None:
    found = []
    for room in ("eval_workers", "pipelines"):
        for path in (REPOSITORY / room).rglob("*.py"):
            for node in ast.walk(ast.parse(path.read_text("utf-8"))):
                is_field = isinstance(node, ast.AnnAssign) and ast.unparse(node.target) == "dtype"
                if is_field and node.value is not None:
                    found.append(path.name)
                if isinstance(node, ast.FunctionDef) and node.args.defaults:
                    names = [a.arg for a in (*node.args.args, *node.args.kwonlyargs)]
                    found += [path.name] * ("dtype" in names)
    assert found == ["model_options.py"]


def test_every_command_that_counts_takes_its_options() -> None:
    wanted = {f.name for f in fields(CorpusOptions)}
    for command in ("corpus count", "pipeline"):
        assert wanted <= {p.name for p in parameters(class_of(command))}


def test_the_rules_of_counting_are_those_of_the_kernel() -> None:
    assert get_args(Rule) == RULES
