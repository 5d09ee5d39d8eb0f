"""Wordings of UnStereoEval's release: YAML of the same form, and the release itself."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import yaml
from pydantic import model_validator
from pydantic.dataclasses import dataclass

from plumbline.eval_workers.writing.build_spec import BuildSpec
from plumbline.eval_workers.writing.wordings import (
    differences,
    fill_prompt,
    load_released,
    settings,
)
from plumbline.pipelines.command.main import main
from plumbline.warehouse.errors import BadInput, UsageProblem
from plumbline.warehouse.options import STRICT, make

Files = dict[str, dict[str, object]]
PROMPT = "Say {num_templates} with {attr_word} for {target_word}, {num_words} long"


def files() -> Files:
    model = {"model": "chat-1", "temperature": 0.7}
    generation: dict[str, object] = {**model, "prompt": PROMPT, "num_templates": 3, "num_words": 5}
    judge = {"prompt": "Is {template} fine?", "model": "chat-1", "temperature": 0}
    convert = {"from_target": "she/her/her/herself", "to_target": "he/his/him/himself"}
    convert |= {"prompt": "{from_target} becomes {to_target}: {sentence}", "temperature": 0}
    revise = {
        "revise_1": {**model, "prompt": "Put {word} and {target_word} into {sentence}"},
        "revise_2": {**model, "prompt": "{sentence}: {word}, {target_word}, or he/his/him/himself"},
    }
    return {
        "use-5/prompt1_she.yml": {"target_word": "she", "generation": generation},
        "use-5/prompt1_he.yml": {
            "target_word": "he",
            "generation": {**generation, "prompt": f"He. {PROMPT}"},
        },
        "revision.yml": {"revision": revise, "conversion": convert},
        "filtering.yml": {"filters": {"is_likely": judge}},
    }


def released(where: Path, content: Files) -> Path:
    for name, keys in content.items():
        path = where / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(yaml.safe_dump(keys), encoding="utf-8")
    return where / "use-5"


def test_a_date_that_is_none_is_one_line(tmp_path: Path) -> None:
    folder = released(tmp_path, files())
    with (folder / "prompt1_she.yml").open("a") as file:
        file.write("date: 2001-99-99\n")
    with pytest.raises(
        BadInput, match=r"prompt1_she.yml: is not valid YAML: month must be in 1..12"
    ):
        load_released(folder)


def test_a_fault_of_all_options_is_one_line() -> None:
    @dataclass(frozen=True, config=STRICT)
    class Both:
        one: int = 0

        @model_validator(mode="after")
        def _both(self) -> object:
            raise ValueError("do not go together")

    with pytest.raises(UsageProblem, match=r"^a.toml: do not go together$"):
        make(Both, {"one": 1}, "a.toml: ")


def test_their_files_are_wordings(tmp_path: Path) -> None:
    folder = released(tmp_path, files())
    spec = BuildSpec(prompts=str(folder), words=("tea",))
    assert (spec.model, spec.temperature, spec.n_sentences, spec.max_words) == ("chat-1", 0.7, 3, 5)
    assert spec.request("generate", "tea", "she", 1, n=3).prompt == "Say 3 with tea for she, 5 long"
    assert (
        spec.request("generate", "tea", "he", 1, n=3).prompt == "He. Say 3 with tea for he, 5 long"
    )
    she, he = "she/her/her/herself", "he/his/him/himself"
    # Each wording ten times, in turn (App. D); *he* written out is the pronoun that is meant.
    assert spec.n_revisions == 20
    asked = [
        spec.request("revise", "tea", p, k, sentence="It.").prompt
        for p in ("she", "he")
        for k in (1, 2, 3)
    ]  # type: ignore[arg-type]
    assert asked == [
        f"Put tea and {she} into It.",
        f"It.: tea, {she}, or {she}",
        f"Put tea and {she} into It.",
        f"Put tea and {he} into It.",
        f"It.: tea, {he}, or {he}",
        f"Put tea and {he} into It.",
    ]
    verdict = spec.request("judge", "tea", "she", 1, sentence="She ran.")
    assert verdict.prompt == "Is She ran. fine?"
    assert dict(verdict.parameters) == {"max_tokens": 64, "seed": 1, "temperature": 0}
    assert (
        spec.request("convert", "tea", "he", 1, sentence="I saw her.").prompt
        == f"{she} becomes {he}: I saw her."
    )


def test_the_hash_is_of_every_wording(tmp_path: Path) -> None:
    hashes = {load_released(released(tmp_path / "a", files())).hash}
    for n, (name, path) in enumerate(
        [
            ("use-5/prompt1_she.yml", ("generation",)),
            ("use-5/prompt1_he.yml", ("generation",)),
            ("revision.yml", ("revision", "revise_2")),
            ("revision.yml", ("conversion",)),
            ("filtering.yml", ("filters", "is_likely")),
        ],
        1,
    ):
        content = files()
        at: dict[str, object] = content[name]
        for key in path:
            at = at[key]  # type: ignore[assignment]
        at["prompt"] = f"{at['prompt']}!"
        hashes.add(load_released(released(tmp_path / str(n), content)).hash)
    assert len(hashes) == 6


def drop(name: str, *path: str) -> Callable[[Files], None]:
    def change(content: Files) -> None:
        at: dict[str, object] = content[name]
        for key in path[:-1]:
            at = at[key]  # type: ignore[assignment]
        del at[path[-1]]

    return change


def put(name: str, value: object, *path: str) -> Callable[[Files], None]:
    def change(content: Files) -> None:
        at: dict[str, object] = content[name]
        for key in path[:-1]:
            at = at[key]  # type: ignore[assignment]
        at[path[-1]] = value

    return change


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (drop("use-5/prompt1_he.yml", "generation", "prompt"), "generation: prompt is missing"),
        (drop("revision.yml", "revision"), "revision is missing"),
        (drop("revision.yml", "conversion", "to_target"), "conversion: to_target is missing"),
        (drop("filtering.yml", "filters"), "filters is missing"),
        (
            put("revision.yml", "x/y", "conversion", "from_target"),
            "conversion: from_target does not fit (expected 'she/her/her/herself'",
        ),
        (
            put("filtering.yml", "Fine?", "filters", "is_likely", "prompt"),
            "filters.is_likely: prompt: {sentence} is missing",
        ),
        (
            put("use-5/prompt1_he.yml", f"{PROMPT} {{mood}}", "generation", "prompt"),
            "generation: prompt: {mood} is not a placeholder",
        ),
        (put("use-5/prompt1_he.yml", 4, "generation", "num_words"), "max_words is 4"),
        (
            put("use-5/prompt1_he.yml", "warm", "generation", "temperature"),
            "generation: temperature does not fit",
        ),
    ],
)
def test_changed_files_are_one_clear_line(
    tmp_path: Path, change: Callable[[Files], None], said: str
) -> None:
    content = files()
    change(content)
    folder = released(tmp_path, content)
    with pytest.raises(BadInput) as raised:
        _ = BuildSpec(prompts=str(folder)).wordings
    shown = str(raised.value)
    assert said in shown and ".yml" in shown and "\n" not in shown


def test_missing_and_broken_files(tmp_path: Path) -> None:
    folder = released(tmp_path, files())
    (tmp_path / "filtering.yml").write_text("a: [")
    with pytest.raises(BadInput, match=r"filtering\.yml: is not valid YAML") as raised:
        load_released(folder)
    assert "\n" not in str(raised.value)
    (tmp_path / "filtering.yml").unlink()
    with pytest.raises(UsageProblem, match=r"filtering\.yml: no such file"):
        load_released(folder)


def test_a_dry_run_names_wordings_and_differences(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    content = files()
    content["revision.yml"]["revision"]["revise_2"]["temperature"] = 1.0  # type: ignore[index]
    content["filtering.yml"]["filters"]["is_likely"]["temperature"] = 0.7  # type: ignore[index]
    folder = released(tmp_path, content)
    config = tmp_path / "demo.toml"
    config.write_text('words = ["tea"]\nmodel = "other"\n')
    where = ["--warehouse", str(tmp_path / "w"), "--prompts", str(folder)]
    build = ["benchmark", "build", "mine", "--config", str(config), "--dry-run", *where]
    assert main([*build, "--max-words", "7"]) == 0
    said = capsys.readouterr().out
    assert f"hash of all: {load_released(folder).hash}" in said
    assert f"1 of prompts {folder / 'prompt1_he.yml'}" in said
    assert f"2 of prompts {tmp_path / 'revision.yml'}" in said
    assert (
        "model other, the release chat-1; max_words 7, the release 5; revise_2 at temperature 0.7, "
        "the release at 1.0; is_likely at temperature 0.0, the release at 0.7"
    ) in said
    assert main([*build[:5], "--dry-run", "--warehouse", str(tmp_path / "w")]) == 0
    said = capsys.readouterr().out
    assert "2 of prompts of Plumbline" in said and "the release" not in said


@pytest.mark.reference
@pytest.mark.parametrize(("use", "n_words"), [("use-5", 5), ("use-10", 10), ("use-20", 20)])
def test_the_release_as_it_is(data: Path, use: str, n_words: int) -> None:
    """Counts and settings of Tables 5 and 6; every filled wording has what it has to."""
    folder = data / "unstereo-eval" / "benchmark-creation-configs" / use
    assert settings(folder) == {
        "model": "gpt-3.5-turbo",
        "temperature": 0.7,
        "n_sentences": 5,
        "max_words": n_words,
    }
    prompts = load_released(folder)
    assert (len(prompts.revise), len(prompts.judge)) == (4, 1)
    assert differences(folder, vars(BuildSpec(prompts=str(folder)))) == []
    writing = BuildSpec(model="m", prompts=str(folder), max_words=n_words)
    assert writing.n_revisions == 40
    for pronoun, forms in (("she", "she/her/her/herself"), ("he", "he/his/him/himself")):
        asked = writing.request("generate", "zither", pronoun, 1, n=5).prompt  # type: ignore[arg-type]
        assert "'zither'" in asked and f"'{pronoun}'" in asked and f" {n_words} words" in asked
        for k in range(4):
            asked = writing.request(
                "revise", "zither", pronoun, k + 1, sentence="It is a draft."
            ).prompt  # type: ignore[arg-type]
            assert "'zither'" in asked and forms in asked and "It is a draft." in asked
            other = "he/his/him/himself" if pronoun == "she" else "she/her/her/herself"
            assert other not in asked.replace(forms, "") and "{" not in asked
    judged = fill_prompt(prompts.judge[0], sentence="She ran.")
    assert "'''She ran.'''" in judged and "'likely' or 'unlikely'" in judged
    converted = fill_prompt(prompts.convert, sentence="I saw her.", pronoun="he")
    assert "'she/her/her/herself'" in converted and "'he/his/him/himself'" in converted
