"""Options declared once: the same checks for a command, a file and code; every command has them."""

from __future__ import annotations

import re
from dataclasses import fields
from typing import get_args

import pytest

from plumbline.eval_workers.models.model_options import OF_SCORES, ModelOptions
from plumbline.jobs.kernel.cooccurrences import RULES
from plumbline.jobs.kernel.corpus_options import Rule
from plumbline.pipelines.command.base import class_of
from plumbline.pipelines.command.main import main
from plumbline.warehouse.options import words

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
    hidden = (*_LOADING[command], *class_of(command).without)
    shown = set(re.findall(r"--[a-z-]+", capsys.readouterr().out))
    for field in fields(ModelOptions):
        option = f"--{field.name.replace('_', '-')}"
        assert (option in shown) == (field.name not in hidden), option


def test_words_of_options_make_the_same_options() -> None:
    chosen = ModelOptions(dtype="float16", batch_tokens=9, per_token=True, adapter="a b")
    assert words(chosen) == [
        *("--dtype", "float16", "--batch-tokens", "9", "--adapter", "a b", "--per-token")
    ]


def test_the_rules_of_counting_are_those_of_the_kernel() -> None:
    assert get_args(Rule) == RULES
