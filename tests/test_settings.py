"""Settings of commands, and the pipeline's plan made from them."""

from collections.abc import Mapping
from pathlib import Path

import pytest

from plumbline.pipelines.command.base import Command, Done, class_of, parameters
from plumbline.pipelines.command.main import main
from plumbline.pipelines.command.registry import targets
from plumbline.pipelines.command.settings import configured, made
from plumbline.pipelines.commands import pipeline
from plumbline.pipelines.commands.corpus import Count
from plumbline.pipelines.commands.model_commands.look import Look
from plumbline.pipelines.commands.pipeline import Parts, Pipeline
from plumbline.pipelines.pipeline_plan import CorpusPlan, ModelPlan, PipelinePlan, make_plan
from plumbline.warehouse.errors import MissingComponent, UsageProblem
from plumbline.warehouse.storage.store import Store
from tests.released_files import write_use_5


def load(
    config: Path | None = None,
    given: Mapping[str, object] | None = None,
    environment: Mapping[str, str] | None = None,
) -> tuple[Pipeline, dict[str, str]]:
    """The pipeline's options, and the sources of those that were not typed and are no defaults."""
    values = configured(Pipeline, config, environment)
    return made(Pipeline, given or {}, values), {n: v.source for n, v in values.items()}


def plan(**given: object) -> PipelinePlan:
    return make_plan(made(Pipeline, given))


def test_stronger_sources_win_and_are_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    usual, file = Path("plumbline.toml"), Path("my.toml")
    usual.write_text('dtype = "float16"\ndemo_tokens = 7\nseed = 3\ndevice = "cpu"\n')
    file.write_text('device = "cuda"\nbenchmarks = ["a", "use-5"]\n')
    environment = {"PLUMBLINE_DEMO_TOKENS": "8", "PLUMBLINE_SEED": "4", "PLUMBLINE_DTYPE": ""}
    environment |= {"PLUMBLINE_DEVICE": "auto"}
    chosen, origin = load(file, {"seed": 5}, environment)
    assert (chosen.dtype, chosen.demo_tokens, chosen.seed) == ("float16", 8, 5)
    assert (chosen.device, chosen.benchmarks) == ("cuda", ("a", "use-5"))
    assert origin["dtype"] == str(usual) and origin["device"] == str(file)
    assert origin["demo_tokens"] == "PLUMBLINE_DEMO_TOKENS" and "model" not in origin
    with pytest.raises(UsageProblem, match="PLUMBLINE_DTYPE: dtype = 'int3': should be 'float32'"):
        load(file, {}, {"PLUMBLINE_DTYPE": "int3"})


def test_stages_name_their_input_and_print_nothing_to_standard_output(
    tmp_path: Path,
    store: Store,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(pipeline, "is_ngram", lambda location: location == "5gram")
    (tmp_path / "c").mkdir()
    for name in "ab":
        (tmp_path / f"c/{name}.jsonl").write_text("")
    given = {"corpus": f"{tmp_path}/c/*.jsonl", "benchmarks": ("use-5",)}
    given |= {"model": ("gpt2", "5gram"), "prompt_sets": ("topics",), "warehouse": store.root}
    stages = Parts(made(Pipeline, given), store).all()
    on = ["c", "use-5", "use-5", "topics", "use-5", "", ""]
    assert [stage.on for stage in stages] == on
    shown = capsys.readouterr()
    assert not shown.out and "5gram counts n-grams" in shown.err


def test_a_given_out_goes_before_that_of_a_settings_file(tmp_path: Path) -> None:
    """With the warehouse in it, also for `look`; a file's own `warehouse` stays."""
    file = tmp_path / "my.toml"
    file.write_text('out = "a"\n')
    assert str(load(None, {"warehouse": "a/ages"}, {})[0].warehouse) == "a/ages"
    chosen, _ = load(file, {"out": "b"}, {})
    assert (str(chosen.out), str(chosen.warehouse)) == ("b", "b/warehouse")
    look = made(Look, {"model": "m", "out": "b"}, configured(Look, file, {}))
    assert (str(look.out), str(look.warehouse)) == ("b", "b/warehouse")
    file.write_text('out = "a"\nwarehouse = "w"\n')
    assert str(load(file, {"out": "b"}, {})[0].warehouse) == "w"


def test_commands_take_their_own_tables(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("plumbline.toml").write_text(
        "[score]\nconcurrency = 3\n[warehouse.compact]\nkeep_days = 3\n"
    )
    monkeypatch.setenv("PLUMBLINE_SCORE_DTYPE", "float16")
    values = configured(class_of("score"))
    assert values["concurrency"] == (3, "plumbline.toml")
    assert values["dtype"] == ("float16", "PLUMBLINE_SCORE_DTYPE")
    assert configured(class_of("warehouse compact"))["keep_days"].value == 3
    assert "warehouse" not in configured(Count)


@pytest.mark.parametrize("name", targets())
def test_an_empty_setting_counts_as_missing(name: str, tmp_path: Path) -> None:
    """Every option of every command, in a settings file and in that of `--config`."""
    kind, file = class_of(name), tmp_path / "my.toml"
    given = {p.name: "a" for p in parameters(kind) if p.default is ...}
    table = "pipeline" if kind.at_top else name.replace(" ", ".").replace("-", "_")
    lines = "".join(f'{p.name} = ""\n' for p in parameters(kind))
    file.write_text(f"[{table}]\n{lines}")
    try:
        usual = made(kind, given)
    except UsageProblem:  # an option that isn't required, but one of several has to be given
        return
    assert made(kind, given, configured(kind, file, {})) == usual


def test_plans() -> None:
    both = plan(corpus="a/*.jsonl b/*.jsonl", benchmarks="winobias", model="gpt2")
    assert both.corpus == CorpusPlan("a", ("a/*.jsonl", "b/*.jsonl"))
    assert both.models == (ModelPlan("gpt2", location="gpt2"),) and both.disclosure == ()
    assert plan(model="gpt2", data="d").benchmarks[0] == "winobias"
    text = plan(corpus="a/x.jsonl")
    assert text.models == () and text.scored() == ()
    own = plan(corpus="a/x.jsonl", model="train:small,gpt2")
    assert own.made_benchmark == "a-frames" and own.disclosure == ("topics",)
    alone = plan(model="gpt2")
    assert alone.scored() == () and alone.disclosure == ("topics",)


def test_models_are_loaded_as_the_settings_and_their_list_say(tmp_path: Path) -> None:
    """What a list says of a model goes before what the settings say of all."""
    listed, file = tmp_path / "models.toml", tmp_path / "plumbline.toml"
    listed.write_text('[[model]]\nid = "a/b"\n[[model]]\nid = "c/d"\ndtype = "float16"\n')
    file.write_text(f'models = "{listed}"\nbenchmarks = "winobias"\ndtype = "bfloat16"\n')
    models = make_plan(load(file, {}, {"PLUMBLINE_DEVICE": "cpu"})[0]).models
    assert [(m.location, m.options.dtype, m.options.device) for m in models] == [
        ("a/b", "bfloat16", "cpu"),
        ("c/d", "float16", "cpu"),
    ]
    with pytest.raises(UsageProblem, match="exclude each other"):
        plan(model="gpt2", models=str(listed))


def test_models_of_a_config_file_replace_those_of_the_settings(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    one, several = 'model = "a/b"\n', '[[model]]\nid = "c/d"\n'
    for usual, stronger, location in ((one, several, "c/d"), (several, one, "a/b")):
        Path("plumbline.toml").write_text(usual)
        Path("my.toml").write_text(stronger)
        for config, environment in ((Path("my.toml"), {}), (None, {"PLUMBLINE_CONFIG": "my.toml"})):
            (model,) = make_plan(load(config, {}, environment)[0]).models
            assert model.location == location
    Path("list.toml").write_text(several)
    (model,) = make_plan(load(None, {"models": "list.toml"}, {})[0]).models
    assert model.location == "c/d", "so does a typed list"


def noting(place: Path, settings: str, **options: object) -> tuple[Parts, list[Command]]:
    """A pipeline with a settings file, and the commands that its stages would have run."""
    file, commands = place / "own.toml", list[Command]()
    file.write_text(settings)

    def run(name: str, store: Store, command: Command) -> Done:
        commands.append(command)
        return Done()

    options |= {"warehouse": place / "w", "config": str(file), "out": place / "out"}
    return Parts(made(Pipeline, options), Store.open(place / "w"), run), commands


def test_the_pipeline_writes_the_straight_world(tmp_path: Path) -> None:
    """Whatever the settings of `corpus demo` say: the corpus has its name."""
    parts, commands = noting(tmp_path, '[corpus.demo]\nworld = "swapped"\n')
    parts.corpus()[0].work()
    assert [vars(command)["world"] for command in commands] == ["straight"]


def test_fairpair_of_a_pipeline_takes_its_own_settings(tmp_path: Path) -> None:
    """But not on the closed world, whose plan says n = 50; the seed is the pipeline's."""
    own = {"model": "gpt2", "probe_set": "common-sents"}
    for more, n in ((own, 5), ({}, 50)):
        parts, commands = noting(tmp_path, "[fairpair.run]\nn = 5\nseed = 7\n", seed=3, **more)
        parts.results["train test-model"] = Done(files=["model"])
        (stage,) = (x for x in parts.evaluate() if x.doing.startswith("FairPair"))
        stage.work()
        assert [(vars(x)["n"], vars(x)["seed"]) for x in commands] == [(n, 3)]


def test_missing_backends_and_wrong_settings_are_said_before_anything_is_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for wrong in ("fail_if", "fail_iff"):
        parts, _ = noting(tmp_path, f'[measure]\n{wrong} = "pd changes"\n')
        with pytest.raises(UsageProblem, match=rf"own\.toml.*{wrong}.*(should be|is unknown)"):
            parts.options.check()
    monkeypatch.setenv("PLUMBLINE_VLLM", "/nowhere")
    with pytest.raises(MissingComponent, match="no Python in /nowhere"):
        made(Pipeline, {"backend": "vllm"}).check()


@pytest.fixture
def released(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working directory, whose settings file names released files and the warehouse."""
    monkeypatch.chdir(tmp_path)
    for name in ("PLUMBLINE_DATA", "PLUMBLINE_WAREHOUSE"):
        monkeypatch.delenv(name, raising=False)
    write_use_5(tmp_path / "data/unstereo-eval", ["{pronoun} drank tea."])
    prompts = tmp_path / "data/debias-llms/snli_neutral_test.csv"
    prompts.parent.mkdir()
    prompts.write_text("text\nsits in the sun.\n")
    given = 'data = "data"\nwarehouse = "results"\nbenchmarks = "use-5"\nmodel = "m"\n'
    Path("plumbline.toml").write_text(given)
    return tmp_path


def test_every_command_takes_its_places_from_the_settings_file(
    released: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A variable is stronger, an option strongest; a study keeps a warehouse of its own."""
    assert main(["disclosure", "prompts", "snli"]) == 0
    assert main(["benchmark", "import", "use-5"]) == 0
    assert main(["sql", "SELECT prompt FROM probe_prompt", "--format", "csv"]) == 0
    assert "sits in the sun" in capsys.readouterr().out
    assert main(["doctor"]) in (0, 4)
    assert "debias-llms in data" in capsys.readouterr().out
    assert main(["benchmark", "import", "use-5", "--data", "elsewhere"]) == 3
    assert "elsewhere/unstereo-eval" in capsys.readouterr().err
    monkeypatch.setenv("PLUMBLINE_DATA", "nowhere")
    assert main(["benchmark", "import", "use-5"]) == 3
    assert "nowhere/unstereo-eval" in capsys.readouterr().err
    monkeypatch.setenv("PLUMBLINE_WAREHOUSE", "w")
    assert main(["benchmark", "import", "use-5", "--data", "data"]) == 0
    assert Store.existing(Path("w")) and not Path("out").exists()
    monkeypatch.delenv("PLUMBLINE_WAREHOUSE")
