"""Regular expressions in adapters that somebody else made: none is matched for ever."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plumbline.eval_workers.models.local.patterns import why_refused
from tests.test_model_sources import TARGETS, lora, refused, scored
from tests.tiny_models import save

EVIL = [r"(a+)+$", r"(a|a)*b", r"(a|aa)+c", r"(a?a)*c", r"((a*)*)*c", r"a?" * 40 + "a" * 40]
EVIL += [r"(a|a)" * 40 + "c", r".*" * 12 + "c", r"(.*)\1+c", "a" * 3000]
#: As PEFT, its users and unsloth write them.
GOOD = [r".*\.(q_proj|k_proj)", r"^transformer\.h\.\d+\.attn\.c_attn$", "c_attn", r".*c_attn"]
GOOD += [r"(?:.*?(?:language|text).*?(?:attn|mlp).*?(?:q_proj|v_proj).*?)|(?:model\.[\d]{1,}\.x)"]


@pytest.mark.parametrize("pattern", EVIL)
def test_patterns_with_too_many_ways_are_refused(pattern: str) -> None:
    assert why_refused(pattern)


@pytest.mark.parametrize("pattern", GOOD)
def test_patterns_as_adapters_have_them_are_not(pattern: str) -> None:
    assert why_refused(pattern) == ""


_PIECE = st.sampled_from(
    ["a", "b", ".", r"\w", "[ab]", "(a|b)", "(a|ab)", "(ab)", "a{1,3}", "(a?)"]
)
_SOME = st.lists(st.tuples(_PIECE, st.sampled_from(["", "*", "+", "?", "*?", "{2,}"])), max_size=9)


@given(_SOME)
def test_what_is_not_refused_ends(parts: list[tuple[str, str]]) -> None:
    pattern = "".join(f"(?:{piece}){repeat}" for piece, repeat in parts)
    if not why_refused(pattern):
        start = time.process_time()
        re.fullmatch(pattern, "a" * 40 + "!")
        assert time.process_time() - start < 5


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save("gpt2", tmp_path_factory.mktemp("models") / "gpt2")


def test_an_adapter_whose_pattern_never_ends_is_refused(base: Path, tmp_path: Path) -> None:
    evil = r"(.|[^.])*!"
    name = "transformer.h.0.attn.c_attn"
    with pytest.raises(subprocess.TimeoutExpired):  # it would, were it matched with a name
        code = "import re, sys; re.fullmatch(*sys.argv[1:])"
        subprocess.run([sys.executable, "-c", code, r"(.|[^!])*!", name], timeout=5, check=True)
    adapter = lora(base, tmp_path / "adapter", TARGETS["gpt2"])
    path = adapter / "adapter_config.json"
    config = json.loads(path.read_text())
    path.write_text(json.dumps(config | {"target_modules": r".*\.attn\.c_attn"}))
    assert scored(base, adapter=str(adapter))
    for said in (
        {"target_modules": evil},
        {"exclude_modules": evil},
        {"modules_to_save": [evil]},
        {"layers_pattern": [evil], "layers_to_transform": [0]},
        {"rank_pattern": {evil: 4}},
        {"alpha_pattern": {evil: 4}},
    ):
        path.write_text(json.dumps(config | said))
        told = refused(base, adapter=str(adapter))
        assert f"{next(iter(said))} holds a pattern" in told and "not fixed" in told
