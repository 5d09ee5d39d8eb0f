"""Lists of models: what a file may say, and scoring one by one although some can't be had."""

import gc
import weakref
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from plumbline.eval_workers.models import model_lists
from plumbline.eval_workers.models.local import model_files as _weights
from plumbline.eval_workers.models.local.causal_model import CausalModel
from plumbline.eval_workers.models.model_options import ModelOptions
from plumbline.eval_workers.pairs.released_scores import N_PARAMETERS
from plumbline.pipelines.command.settings import configured, made
from plumbline.pipelines.commands.pipeline import Parts, Pipeline, Stage
from plumbline.pipelines.pipeline_plan import make_plan
from plumbline.warehouse.errors import BadInput, Interrupted, PlumblineError, UsageProblem
from plumbline.warehouse.storage.store import Store
from tests.test_score import TEMPLATES, _pairs


def test_the_shipped_lists_are_those_of_the_papers() -> None:
    """Disclosure's has ten models, with the names that its tables print."""
    listed = model_lists.load("unstereoeval")
    assert len(listed) == 28 == len({entry.id for entry in listed})
    assert tuple(entry.name or entry.id for entry in listed) == tuple(N_PARAMETERS)
    others = {entry.id: entry.name for entry in listed if entry.name}
    assert others == {f"allenai/OLMo-{size}-hf": f"allenai/OLMo-{size}" for size in ("1B", "7B")}
    listed = model_lists.load("disclosure")
    names = {str(entry.name).upper() for entry in listed}
    assert len(listed) == 10 == len(names) == len({entry.id for entry in listed})
    assert {f"LLAMA2 {size}{kind}" for size in ("7B", "13B") for kind in ("", "-CHAT")} < names


@pytest.mark.reference
def test_the_list_of_fairpair_is_that_of_its_table(data: Path) -> None:
    table = (data.parent / "reference" / "fairpair_table3.csv").read_text("utf-8").splitlines()
    printed = list(dict.fromkeys(line.split(",")[0] for line in table[1:]))
    assert [one.name for one in model_lists.load("fairpair")] == printed[:4]
    assert printed[4:] == ["LLaMa", "InstructGPT", "Average"]  # no hub has these models


def test_a_settings_file_holds_a_list_too(tmp_path: Path) -> None:
    """What an entry does not say is what the file says for all."""
    path = tmp_path / "audit.toml"
    path.write_text(
        'dtype = "bfloat16"\nbenchmarks = "winobias"\n'
        '[[model]]\nid = "a/b"\nbackend = "vllm"\n[[model]]\nid = "c/d"\n'
    )
    values = configured(Pipeline, path, {})
    chosen = made(Pipeline, {}, values)
    one, two = make_plan(chosen).models
    assert (one.location, two.location) == ("a/b", "c/d")
    assert one.options == ModelOptions(backend="vllm", dtype="bfloat16")
    assert two.options == ModelOptions(dtype="bfloat16")
    assert values["models"].source == str(path)
    with pytest.raises(BadInput, match="key 'dtype': is unknown"):
        model_lists.load(str(path))
    path.write_text("model = []")
    with pytest.raises(BadInput, match="model: is empty"):
        model_lists.load(str(path))


def evaluated(store: Store, models: Path) -> Parts:
    """The parts of a pipeline that scored a list of models on `demo`."""
    given = {"models": str(models), "benchmarks": ("demo",), "warehouse": store.root}
    parts = Parts(made(Pipeline, given), store)
    parts.do(parts.evaluate())
    return parts


def test_one_model_that_fails_stops_no_other(
    store: Store, model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    _pairs(store, TEMPLATES[:6])
    path = tmp_path / "mine.toml"
    gone = tmp_path / "gone"
    path.write_text(
        f'[[model]]\nid = "{gone}"\n[[model]]\nid = "{model}"\n'
        f'[[model]]\nid = "{model}"\ndtype = "bfloat16"\n'
    )
    (error,) = evaluated(store, path).errors
    assert str(gone) in str(error) and f"failed: {error}" in capsys.readouterr().err
    assert sorted(run["status"] for run in store.read("run").to_pylist()) == [
        *("failed", "finished", "finished")
    ]
    rows = store.read("pair_score").to_pylist()
    assert len({row["model_key"] for row in rows}) == 2 and len(rows) == 12


def test_what_one_of_several_models_cannot_do_stops_no_other_but_an_outage_does(
    store: Store,
) -> None:
    """A masked model can't sample, which is a wrong use; a network that is down is down for all."""

    def tried(error: PlumblineError) -> list[Exception]:
        def work() -> None:
            raise error

        parts = Parts(made(Pipeline, {}), store)
        parts.do([Stage("Trying", work, may_fail=True), Stage("Going on", lambda: None)])
        return parts.errors

    wrong = UsageProblem("model m", "predicts no next tokens")
    assert tried(wrong) == [wrong]
    with pytest.raises(Interrupted, match="no network"):
        tried(Interrupted("hub", "no network"))


def test_an_only_model_that_fails_ends_the_pipeline(store: Store, tmp_path: Path) -> None:
    _pairs(store, TEMPLATES[:6])
    path = tmp_path / "mine.toml"
    path.write_text(f'[[model]]\nid = "{tmp_path}/gone"\n')
    with pytest.raises(BadInput, match="gone"):
        evaluated(store, path)


@pytest.fixture
def loads(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[weakref.ref[object]]]:
    """Models that were loaded; loading fails while an earlier one is in memory, as on a GPU."""
    loaded: list[weakref.ref[object]] = []
    real = _weights.load_part

    def load(*arguments: Any, **options: Any) -> Any:
        if "weights_only" not in options:  # a configuration or a tokenizer
            return real(*arguments, **options)
        assert not any(ref() for ref in loaded), "an earlier model is still in memory"
        model, info = real(*arguments, **options)
        loaded.append(weakref.ref(model))
        return model, info

    monkeypatch.setattr(_weights, "load_part", load)
    gc.disable()
    yield loaded
    gc.enable()


@pytest.mark.parametrize("kind", [None, BadInput])
def test_a_model_is_forgotten_before_the_next_one_loads(
    store: Store,
    model: Path,
    tmp_path: Path,
    loads: list[weakref.ref[object]],
    monkeypatch: pytest.MonkeyPatch,
    kind: type[Exception] | None,
) -> None:
    """Also one that failed, whose error is kept until the others are done."""
    compute = CausalModel.score

    def fail(self: CausalModel, texts: list[str]) -> object:
        found = compute(self, texts)
        if kind is not None:
            raise kind("it failed")
        return found

    monkeypatch.setattr(CausalModel, "score", fail)
    _pairs(store, TEMPLATES[:6])
    path = tmp_path / "mine.toml"
    kinds = ("float32", "bfloat16", "float16")
    path.write_text("".join(f'[[model]]\nid = "{model}"\ndtype = "{k}"\n' for k in kinds))
    assert len(evaluated(store, path).errors) == (3 if kind else 0)
    assert len(loads) == 3
