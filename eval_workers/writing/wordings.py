"""Read the wordings of requests from a TOML file or from UnStereoEval's release, and fill them in.

In the release, a folder such as ``benchmark-creation-configs/use-5`` has one file per pronoun, with
the wording that asks for new sentences. Files next to the folder have the wordings that ask to
revise, convert and judge sentences.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Sequence
from importlib import resources
from pathlib import Path
from typing import Annotated

from pydantic import AfterValidator, Field

from plumbline.eval_workers.chat.requests import Pronoun, Purpose
from plumbline.eval_workers.pairs.pronouns.pronoun_templates import PRONOUNS
from plumbline.warehouse.errors import BadInput
from plumbline.warehouse.text import toml_file
from plumbline.warehouse.text.placeholders import holding
from plumbline.warehouse.text.toml_file import OneOrMore, Stripped, read_text, toml_table

#: Pronoun -> its forms, as in UnStereoEval's wordings (App. C): subject, possessive, object and
#: reflexive. In a request, ``{forms}`` stands for the forms of the pronoun that the sentence should
#: have, and ``{from}`` for the forms of the other pronoun.
_FORMS = {"she": "/".join(PRONOUNS["f"].values()), "he": "/".join(PRONOUNS["m"].values())}
_GENERATE = AfterValidator(holding(["word", "pronoun|forms", "n", "max_words"]))
_REVISE = AfterValidator(holding(["word", "pronoun|forms", "sentence"], ["max_words"]))
_CONVERT = AfterValidator(holding(["sentence", "pronoun|forms"], ["from"]))
_JUDGE = AfterValidator(holding(["sentence"]))


@toml_table
class Wordings:
    """The wordings for each purpose. The wordings of ``revise`` and ``judge`` are used in turn.

    If ``as_json`` is true, requests ask for replies in JSON. If ``generate_he`` is set, it is used
    instead of ``generate`` for sentences with *he*.
    """

    generate: Annotated[Stripped, _GENERATE]
    revise: Annotated[tuple[Annotated[Stripped, _REVISE], ...], OneOrMore, Field(min_length=1)]
    convert: Annotated[Stripped, _CONVERT]
    judge: Annotated[tuple[Annotated[Stripped, _JUDGE], ...], OneOrMore, Field(min_length=1)]
    as_json: bool = False
    generate_he: Annotated[Stripped, _GENERATE] | None = None

    def of(self, purpose: Purpose, pronoun: Pronoun) -> Sequence[str]:
        """Return the wordings to use for requests with this purpose and this pronoun."""
        if purpose == "generate" and pronoun == "he" and self.generate_he:
            return [self.generate_he]
        found: str | Sequence[str] = getattr(self, purpose)
        return [found] if isinstance(found, str) else found

    @property
    def hash(self) -> str:
        """A hash of all wordings (16 hex digits), which is recorded with a build."""
        roles: list[object] = [self.generate, self.revise, self.convert, self.judge]
        roles += [self.generate_he] if self.generate_he else []
        return hashlib.sha256(json.dumps(roles).encode()).hexdigest()[:16]


def load(path: Path | None = None) -> Wordings:
    """Read wordings from a TOML file or a folder of UnStereoEval's release (default: ours).

    Raises ``UsageProblem`` if there is no such file. If a placeholder is unknown or missing, raises
    ``BadInput``. Its message has the wording's purpose and number, counted from 1.

    >>> len(load().revise), len(load().judge)
    (4, 2)
    """
    if path and path.is_dir():
        return load_released(path)
    file = path or resources.files("plumbline.eval_workers.writing") / "prompts.toml"
    what = f"prompts {path or 'of Plumbline'}"
    return toml_file.load(Wordings, file, what, generate_he=None)


def fill_prompt(wording: str, **values: object) -> str:
    """Fill the placeholders of a wording. Keep braces that occur in the values.

    >>> fill_prompt("Is '{sentence}' {{fine}}?", sentence="She {ran}.")
    "Is 'She {ran}.' {fine}?"
    >>> fill_prompt("{from} to {forms}", pronoun="he")
    'she/her/her/herself to he/his/him/himself'
    """
    pronoun = str(values.get("pronoun"))
    forms = {"forms": _FORMS.get(pronoun, ""), "from": _FORMS["he" if pronoun == "she" else "she"]}
    return wording.format_map({**forms, **{n: str(value) for n, value in values.items()}})


#: Placeholder in the release -> placeholder in Plumbline. ``_prompts`` replaces `target_word`.
_OURS = {"attr_word": "word", "num_templates": "n", "num_words": "max_words"}
_OURS |= {"from_target": "from", "to_target": "forms", "template": "sentence"}


def load_released(folder: Path) -> Wordings:
    """Read the wordings from a folder of UnStereoEval's release.

    Raises ``UsageProblem`` if a file is missing. Raises ``BadInput`` if a file isn't from the
    release, or if a placeholder is unknown or missing.
    """
    revision = folder.parent / "revision.yml"
    content = {
        "generate": _prompts(folder / "prompt1_she.yml", "pronoun", "generation")[0],
        "generate_he": _prompts(folder / "prompt1_he.yml", "pronoun", "generation")[0],
        # One released wording contains the forms of *he*. In the paper (App. D, Table 6), it has
        # a placeholder instead.
        "revise": [
            prompt.replace(_FORMS["he"], "{forms}")
            for prompt in _prompts(revision, "forms", "revision")
        ],
        "convert": _prompts(revision, "forms", "conversion")[0],
        "judge": _prompts(folder.parent / "filtering.yml", "forms", "filters")[0],
    }
    return toml_file.checked(Wordings, content, f"prompts {folder}")


def _prompts(file: Path, target: str, key: str) -> list[str]:
    """Read the wordings in section ``key`` of a released file. Use Plumbline's placeholders.

    ``target`` is the placeholder that replaces `target_word`.
    """
    import yaml

    path = file.parent.resolve() / file.name
    what, names = f"prompts {path}", _OURS | {"target_word": target}
    text = read_text(path, what, "give a folder of the release, use-5")
    try:
        part = yaml.safe_load(text)[key]
        first, *others = [part] if "prompt" in part else part.values()
        texts = [one["prompt"] for one in (first, *others)]
        return [re.sub(r"\{(\w+)\}", lambda m: f"{{{names.get(m[1], m[1])}}}", t) for t in texts]
    except (yaml.YAMLError, ValueError, LookupError, TypeError, AttributeError) as e:
        raise BadInput(what, f"{key} of UnStereoEval's release can't be read from it") from e
