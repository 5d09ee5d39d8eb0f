"""Settings and the plan made from them."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from plumbline.eval_workers.disclosure.set_measures import ProbeOptions
from plumbline.eval_workers.fairpair.fairpair_options import CLOSED_WORLD, FairPairOptions
from plumbline.eval_workers.scoring.measure import MeasureOptions
from plumbline.eval_workers.scoring.pair_scores import check_imported
from plumbline.pipelines.command.base import all_fields, class_of, line_of, parameters
from plumbline.pipelines.command.main import main
from plumbline.pipelines.command.registry import targets
from plumbline.pipelines.command.value_sources import here, made
from plumbline.pipelines.commands.corpus.counting_corpora import Count
from plumbline.pipelines.commands.look import Look
from plumbline.pipelines.commands.pipeline import Pipeline
from plumbline.pipelines.commands.score import Score
from plumbline.pipelines.pipeline_parts import check_plan
from plumbline.pipelines.pipeline_plan import ModelPlan, make_plan
from plumbline.warehouse.errors import MissingComponent, UsageProblem
from plumbline.warehouse.storage.store import Store


def load(
    file: Path | str | None = None,
    given: Mapping[str, object] | None = None,
    environment: Mapping[str, str] | None = None,
) -> tuple[Pipeline, dict[str, str]]:
    """The pipeline's options, and the sources of those that were not typed and are no defaults."""
    values = here(Pipeline, file, environment)
    return made(Pipeline, given or {}, None, values), {n: v.source for n, v in values.items()}


def printed(capsys: pytest.CaptureFixture[str], command: str, *more: str) -> str:
    assert main(["doctor", "--settings", command, *more]) == 0
    return capsys.readouterr().out


def test_stronger_sources_win_and_are_named(tmp_path: Path) -> None:
    file = tmp_path / "my.toml"
    file.write_text('rule = "windows"\nwindow = 7\nseed = 3\nbenchmarks = ["winobias", "use-5"]\n')
    environment = {"PLUMBLINE_WINDOW": "8", "PLUMBLINE_SEED": "4", "PLUMBLINE_RULE": ""}
    chosen, origin = load(file, {"seed": 5}, environment)
    assert (chosen.rule, chosen.window, chosen.seed) == ("windows", 8, 5)
    assert chosen.benchmarks == ("winobias", "use-5")
    assert origin["rule"] == str(file)
    assert origin["window"] == "PLUMBLINE_WINDOW" and origin["seed"] == "PLUMBLINE_SEED"
    assert "model" not in origin


@pytest.mark.parametrize(
    ("given", "out", "warehouse"),
    [
        ({}, "out", "out/warehouse"),
        ({"out": "o"}, "o", "o/warehouse"),
        ({"warehouse": "a/warehouse"}, "a", "a/warehouse"),
        ({"warehouse": "a/ages"}, "a/ages-out", "a/ages"),
        ({"warehouse": "s3://b/ages"}, "ages-out", "s3://b/ages"),
        ({"out": "o", "warehouse": "a/ages"}, "o", "a/ages"),
    ],
)
def test_two_warehouses_never_share_a_report(
    given: dict[str, str], out: str, warehouse: str
) -> None:
    chosen, _ = load(None, given, {})
    assert (str(chosen.out), str(chosen.warehouse)) == (out, warehouse)
    again = made(Pipeline, options_of(line_of(chosen)), None, {})
    assert (again.out, again.warehouse) == (chosen.out, chosen.warehouse)


def options_of(line: str) -> dict[str, str]:
    """The options of a command line that has only such with a value."""
    words = shlex.split(line)[2:]
    return {name[2:]: value for name, value in zip(words[::2], words[1::2], strict=True)}


def test_what_is_printed_can_be_read_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    file, copy = tmp_path / "my.toml", tmp_path / "copy.toml"
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("PLUMBLINE_DATA", raising=False)
    file.write_text("corpus = 'a \"b\" \\c'\nwindow = 4\ntwin = true\n[fairpair]\nn = 8\n")
    copy.write_text(printed(capsys, "pipeline", "--conf", str(file)))
    text = copy.read_text()
    assert f"[{file}]\ntwin = true\n" in text and "\n[fairpair]\n" in text
    assert load(copy, {}, {})[0] == load(file, {}, {})[0]
    assert load(file, {}, {})[0].corpus == ("a", '"b"', "\\c")
    assert not load(None, {}, {"PLUMBLINE_TWIN": "false"})[0].twin


def test_the_options_of_every_command_are_printed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("plumbline.toml").write_text("[score]\nworkers = 3\n")
    monkeypatch.setenv("PLUMBLINE_SCORE_DTYPE", "float16")
    text = printed(capsys, "score")
    assert "[plumbline.toml]\nworkers = 3\n" in text
    assert '[PLUMBLINE_SCORE_DTYPE]\ndtype = "float16"\n' in text
    assert "[default]\n# benchmark =\n" in text


def test_tables_have_the_options_of_commands(tmp_path: Path) -> None:
    """From every source, a key at a time: the others keep the pipeline's own defaults."""
    file = tmp_path / "my.toml"
    file.write_text(
        '[fairpair]\nn = 9\nphi = ["vader"]\ninstruction = "Go"\n'
        '[disclosure]\nword_list = "gendered"\n[measure]\neta = [0.4]\nepsilon = 0.7\n'
    )
    environment = {"PLUMBLINE_FAIRPAIR_SEED": "3", "PLUMBLINE_MEASURE_LOG_BASE": "2, 10"}
    chosen, origin = load(file, {"fairpair_n": 8, "measure_eta": (0.3,)}, environment)
    assert chosen.fairpair == replace(CLOSED_WORLD, n=8, phi=("vader",), instruction="Go", seed=3)
    assert chosen.disclosure == ProbeOptions(word_list="gendered")
    assert chosen.measure == MeasureOptions(eta=(0.3,), log_base=(2.0, 10.0), epsilon=0.7)
    assert origin["fairpair_phi"] == str(file)
    assert origin["fairpair_seed"] == "PLUMBLINE_FAIRPAIR_SEED"
    assert load(file, {"model": "m"}, {})[0].fairpair == FairPairOptions(
        n=9, phi=("vader",), instruction="Go"
    ), "not those of the closed world"


def test_the_pipeline_has_a_table_of_its_own(tmp_path: Path) -> None:
    """Beside those of commands in groups of the names of its options."""
    file = tmp_path / "my.toml"
    file.write_text(
        '[pipeline]\ncorpus = "a/*.jsonl"\nscore_workers = 2\n[pipeline.fairpair]\nn = 9\n'
        "[corpus.count]\nwindow = 5\n[fairpair.run]\nn = 7\n[score]\nworkers = 3\n"
    )
    environment = {"PLUMBLINE_SCORE_WORKERS": "4"}
    chosen, _ = load(file, {}, environment)
    assert (chosen.corpus, chosen.window, chosen.score_workers) == (("a/*.jsonl",), 10, 2)
    assert chosen.fairpair.n == 9
    assert here(Count, file, environment)["window"].value == 5
    assert here(Score, file, environment)["workers"].value == 4
    assert load(file, {}, {"PLUMBLINE_PIPELINE_SCORE_WORKERS": "5"})[0].score_workers == 5


# The tables of these two are options of `pipeline`, too.
@pytest.mark.parametrize("name", sorted({*targets()} - {"measure"}))
def test_an_empty_setting_is_not_given_unless_a_text_has_to_be(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Every option of every command, in a settings file and in that of `--config`.

    A required or usual text stands for itself: some have a meaning of their own for an empty one.
    """
    kind = class_of(name)
    needed = {p.name: "a" for p in all_fields(kind) if p.default is ...}
    try:
        usual = made(kind, needed)
    except UsageProblem:  # an option that isn't required, but one of several has to be given
        return
    file, config = tmp_path / "my.toml", tmp_path / "config.toml"
    file.write_text(re.sub(r"(?m)^(?:# )?(\w+) =.*", r'\1 = ""', printed(capsys, name)))
    texts = {p.name for p in all_fields(kind) if p.kind in (str, tuple[str, ...])}
    assert here(kind, file, {}).keys() == texts & {p.name for p in parameters(kind)}
    others = [p.name for p in all_fields(kind) if p.name not in texts]
    config.write_text("".join(f'{name} = ""\n' for name in others))
    assert made(kind, needed, config) == usual


def test_a_typed_empty_path_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A shell's variable that isn't set; it was the working directory."""
    monkeypatch.chdir(tmp_path)
    for words in (["corpus", "list", "--warehouse"], ["pipeline", "--out"], ["score", "import"]):
        assert main([*words, ""]) == 2
        assert re.match(r"error: \w+: is empty \(give a value", capsys.readouterr().err)
    assert not list(tmp_path.iterdir())


def test_a_given_out_goes_before_that_of_a_settings_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """With the warehouse in it; a file's own `warehouse` stays."""
    file, copy = tmp_path / "my.toml", tmp_path / "copy.toml"
    file.write_text('out = "a"\n')
    copy.write_text(printed(capsys, "pipeline", "--conf", "cluster"))
    for conf in (file, copy, "cluster"):
        for given, environment in (({"out": "b"}, {}), ({}, {"PLUMBLINE_OUT": "b"})):
            chosen, _ = load(conf, given, environment)
            assert (str(chosen.out), str(chosen.warehouse)) == ("b", "b/warehouse")
    file.write_text('out = "a"\nwarehouse = "w"\n')
    assert str(load(file, {"out": "b"}, {})[0].warehouse) == "w"


def test_a_typed_out_takes_the_warehouse_of_look_along(tmp_path: Path) -> None:
    file = tmp_path / "mine.toml"
    file.write_text('out = "there"\n')
    look = made(Look, {"model": "m"}, None, here(Look, file, {}))
    assert (look.out, look.warehouse) == (Path("there/look"), Path("there/look/warehouse"))
    look = made(Look, {"model": "m", "out": "here"}, None, here(Look, file, {}))
    assert look.warehouse == Path("here/warehouse")


def test_a_table_of_a_warehouse_command_is_no_warehouse(tmp_path: Path) -> None:
    file = tmp_path / "my.toml"
    file.write_text("[warehouse.compact]\nkeep_days = 3\n")
    assert "warehouse" not in here(Count, file, {})
    assert here(class_of("warehouse compact"), file, {})["keep_days"].value == 3


@pytest.mark.parametrize(
    ("corpus", "name"),
    [
        ("../mine.jsonl.zst", "mine"),
        ("mine.jsonl", "mine"),
        ("./mine.jsonl", "mine"),
        ("../Novels_2/*.jsonl.zst", "novels-2"),
        ("novels/1.jsonl novels/2.jsonl", "novels"),
    ],
)
def test_a_corpus_is_named_by_its_file_or_directory(corpus: str, name: str) -> None:
    assert [c.name for c in make_plan(made(Pipeline, {"corpus": corpus})).corpora] == [name]
    chosen = make_plan(made(Pipeline, {"corpus": corpus, "corpus_name": "given"}))
    assert [c.name for c in chosen.corpora] == ["given"]


def test_the_shipped_file_says_every_setting_of_a_cluster() -> None:
    chosen, origin = load("cluster", {}, {})
    said = {name for name, source in origin.items() if source == "cluster"}
    assert said == {
        *("master", "spark_conf", "spark_submit", "spark_options", "dist"),
        *("out", "score_workers"),
    }
    assert chosen.spark_conf == "cluster" and str(chosen.warehouse) == "out/warehouse"


def test_plans() -> None:
    plan = make_plan(
        made(Pipeline, {"corpus": "a/*.jsonl b/*.jsonl", "benchmarks": "winobias", "model": "gpt2"})
    )
    assert [(c.name, c.patterns) for c in plan.corpora] == [("a", ("a/*.jsonl", "b/*.jsonl"))]
    assert plan.models == (ModelPlan("gpt2", location="gpt2"),)
    assert make_plan(made(Pipeline, {"model": "gpt2", "data": "d"})).benchmarks[0] == "winobias"
    assert make_plan(made(Pipeline, {"corpus": "a/x.jsonl"})).models == ()
    assert make_plan(made(Pipeline, {"corpus": "a/x.jsonl"})).scored() == ()


def test_without_benchmarks_or_data_a_plan_makes_its_own() -> None:
    """Around words of the corpus, and prompts that are there; with data those of the papers."""
    own = make_plan(made(Pipeline, {"corpus": "a/x.jsonl", "model": "train:small,gpt2"}))
    assert own.scored() == ("a-offline",) and own.disclosure == ("topics",)
    assert [(o.name, o.corpus) for o in own.written] == [("a-offline", "a")]
    alone = make_plan(made(Pipeline, {"model": "gpt2"}))
    assert alone.scored() == () and alone.disclosure == ("topics",)
    for other in (
        made(Pipeline, {"corpus": "a/x.jsonl", "model": "gpt2", "data": "d"}),
        made(Pipeline, {}),
    ):
        assert make_plan(other).disclosure == () and make_plan(other).benchmarks


def test_the_closed_world_has_a_twin() -> None:
    assert [c.world for c in make_plan(made(Pipeline, {"twin": True})).corpora] == [
        "straight",
        "swapped",
    ]


def test_models_are_loaded_as_the_settings_and_their_list_say(tmp_path: Path) -> None:
    """What a list says of a model goes before what the settings say of all."""
    listed = tmp_path / "models.toml"
    listed.write_text('[[model]]\nid = "a/b"\n[[model]]\nid = "c/d"\ndtype = "float16"\n')
    file = tmp_path / "plumbline.toml"
    file.write_text(f'models = "{listed}"\nbenchmarks = "winobias"\ndtype = "bfloat16"\n')
    chosen, origin = load(file, {}, {"PLUMBLINE_BATCH_TOKENS": "99"})
    models = make_plan(chosen).models
    assert [(m.location, m.options.dtype, m.options.batch_tokens) for m in models] == [
        ("a/b", "bfloat16", 99),
        ("c/d", "float16", 99),
    ]
    assert origin["batch_tokens"] == "PLUMBLINE_BATCH_TOKENS"
    with pytest.raises(UsageProblem, match="PLUMBLINE_DTYPE: dtype = 'int3': should be 'float32'"):
        load(file, {}, {"PLUMBLINE_DTYPE": "int3"})
    with pytest.raises(UsageProblem, match="exclude each other"):
        make_plan(made(Pipeline, {"model": "gpt2", "models": str(listed)}))


def test_a_backend_that_is_not_there_is_said_before_anything_is_counted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("PLUMBLINE_VLLM", "/nowhere")
    with pytest.raises(MissingComponent, match="no Python in /nowhere"):
        check_plan(made(Pipeline, {"backend": "vllm"}))


@pytest.fixture
def released(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working directory, whose settings file names released files and where results go."""
    monkeypatch.chdir(tmp_path)
    for name in ("PLUMBLINE_DATA", "PLUMBLINE_WAREHOUSE", "PLUMBLINE_OUT", "PLUMBLINE_CONF"):
        monkeypatch.delenv(name, raising=False)
    file = tmp_path / "data/unstereo-eval/data/datasets/raw/USE-5.csv"
    prompts = tmp_path / "data/debias-llms/snli_neutral_test.csv"
    for path, content in (
        (file, ",word,template,is_natural\n0,tea,{pronoun} drank tea.,True\n"),
        (prompts, "text\nsits in the sun.\n"),
    ):
        path.parent.mkdir(parents=True)
        path.write_text(content)
    given = 'data = "data"\nout = "results"\nbenchmarks = "use-5"\nmodel = "m"\n'
    Path("plumbline.toml").write_text(given)
    return tmp_path


def test_the_command_that_a_flow_names_as_the_fix_succeeds(released: Path) -> None:
    """It finds what is named by the settings of the flow, and writes where the flow reads."""
    chosen, _ = load(None)
    store = Store.open(chosen.warehouse)
    with pytest.raises(UsageProblem, match="is not in the warehouse") as raised:
        check_imported(store, make_plan(chosen).scored())
    command = re.search(r"run `plumbline (.*?)`", str(raised.value))
    assert command and main(shlex.split(command[1])) == 0
    check_imported(Store.open(chosen.warehouse), make_plan(chosen).scored())


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


def test_a_variable_with_an_open_quote_is_named(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PLUMBLINE_WHY_WORDS", "it's")
    assert main(["why"]) == 2
    err = capsys.readouterr().err
    assert "PLUMBLINE_WHY_WORDS: isn't a list of words: no closing quotation" in err
