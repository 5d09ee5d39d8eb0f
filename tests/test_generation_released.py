"""Wordings of UnStereoEval's release: YAML of the same form, and the release itself."""

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from plumbline.eval_workers.writing.build_spec import BuildSpec
from plumbline.eval_workers.writing.wordings import fill_prompt, load_released
from plumbline.warehouse.errors import BadInput, UsageProblem

Files = dict[str, dict[str, object]]
PROMPT = "Say {num_templates} with {attr_word} for {target_word}, {num_words} long"


def files() -> Files:
    generation: dict[str, object] = {"model": "chat-1", "temperature": 0.7, "prompt": PROMPT}
    convert = {"from_target": "she/her/her/herself", "to_target": "he/his/him/himself"}
    convert |= {"prompt": "{from_target} becomes {to_target}: {sentence}"}
    revise = {
        "revise_1": {"prompt": "Put {word} and {target_word} into {sentence}"},
        "revise_2": {"prompt": "{sentence}: {word}, {target_word}, or he/his/him/himself"},
    }
    return {
        "use-5/prompt1_she.yml": {"target_word": "she", "generation": generation},
        "use-5/prompt1_he.yml": {
            "target_word": "he",
            "generation": {**generation, "prompt": f"He. {PROMPT}"},
        },
        "revision.yml": {"revision": revise, "conversion": convert},
        "filtering.yml": {"filters": {"is_likely": {"prompt": "Is {template} fine?"}}},
    }


def released(where: Path, content: Files) -> Path:
    for name, keys in content.items():
        path = where / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(yaml.safe_dump(keys), encoding="utf-8")
    return where / "use-5"


def changed(name: str, value: object, *path: str) -> Files:
    """The files with another value at a path of keys, or without it for None."""
    content = files()
    at: dict[str, object] = content[name]
    for key in path[:-1]:
        at = at[key]  # type: ignore[assignment]
    at[path[-1]] = value
    if value is None:
        del at[path[-1]]
    return content


SHE, HE, REVISION, FILTERING = files()


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ((HE, None, "generation", "prompt"), "prompt1_he.yml: generation of UnSt"),
        ((HE, f"{PROMPT} {{mood}}", "generation", "prompt"), "generate_he: {mood}"),
        ((SHE, PROMPT.replace("num_words", "long"), "generation", "prompt"), "generate: {long}"),
        ((REVISION, None, "revision"), "revision.yml: revision of UnSt"),
        ((REVISION, 5, "revision"), "revision.yml: revision of UnSt"),
        ((REVISION, {1: {}}, "revision"), "revision.yml: revision of UnSt"),
        ((FILTERING, None, "filters"), "filtering.yml: filters of UnSt"),
        ((FILTERING, "Fine?", "filters", "is_likely", "prompt"), "judge 1: {sentence} is missing"),
    ],
)
def test_changed_files_are_one_clear_line(
    tmp_path: Path, change: tuple[Any, ...], said: str
) -> None:
    folder = released(tmp_path, changed(*change))
    with pytest.raises(BadInput, match=re.escape(said)) as raised:
        _ = BuildSpec(prompts=str(folder)).wordings
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize("text", ["a: [", "date: 2001-99-99\n", None])
def test_missing_and_broken_files(tmp_path: Path, text: str | None) -> None:
    folder = released(tmp_path, files())
    if text is None:
        (tmp_path / FILTERING).unlink()
    else:
        (tmp_path / FILTERING).write_text(text)
    with pytest.raises(BadInput if text else UsageProblem, match=r"filtering\.yml") as raised:
        load_released(folder)
    assert "\n" not in str(raised.value)


@pytest.mark.reference
@pytest.mark.parametrize(("use", "n_words"), [("use-5", 5), ("use-10", 10), ("use-20", 20)])
def test_the_release_as_it_is(data: Path, use: str, n_words: int) -> None:
    folder = data / "unstereo-eval" / "benchmark-creation-configs" / use
    prompts = load_released(folder)
    assert (len(prompts.revise), len(prompts.judge)) == (4, 1)
    writing = BuildSpec(model="m", prompts=str(folder), max_words=n_words)
    assert writing.n_revisions == 40
    forms_of = {"she": "she/her/her/herself", "he": "he/his/him/himself"}
    for pronoun, other in (("she", "he"), ("he", "she")):
        asked = writing.request("generate", "zither", pronoun, 1, n=5).prompt
        assert "'zither'" in asked and f"'{pronoun}'" in asked and f" {n_words} words" in asked
        for k in range(4):
            request = writing.request("revise", "zither", pronoun, k + 1, sentence="It is a draft.")
            asked, forms = request.prompt, forms_of[pronoun]
            assert "'zither'" in asked and forms in asked and "It is a draft." in asked
            assert forms_of[other] not in asked.replace(forms, "") and "{" not in asked
    judged = fill_prompt(prompts.judge[0], sentence="She ran.")
    assert "'''She ran.'''" in judged and "'likely' or 'unlikely'" in judged
    converted = fill_prompt(prompts.convert, sentence="I saw her.", pronoun="he")
    assert all(f"'{forms}'" in converted for forms in forms_of.values())
