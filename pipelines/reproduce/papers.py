"""The papers on FairPair and on disclosure: their settings, and how to read their figures.

FairPair's settings are the defaults of our command. Those of disclosure are in its paper (sections
5.1 to 5.3, Table 4, appendix A.3; QLoRA's base is in nf4); types of weights are in the authors'
scripts (dongxiangjue/Debias-LLMs). Settings without a source are ``NOT_KNOWN``.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from plumbline.eval_workers.disclosure.set_measures import ProbeOptions
from plumbline.eval_workers.fairpair.fairpair_options import FairPairOptions, texts_of
from plumbline.eval_workers.training.training_options import TuneOptions
from plumbline.pipelines.reproduce.printed_figures import Row

#: The printed "model" of a mean over models, which no run measures.
AVERAGE = "Average"
#: A setting that the paper does not give.
NOT_KNOWN = object()


@dataclass(frozen=True)
class Paper:
    """A paper to compare with.

    Attributes:
        name: name of its command, its query, its list of models, and its files of printed figures
            and claims.
        command: command line that measures the models.
        half_units: half a unit of the last printed digit, by metric.
        settings: returns the paper's settings for a row of the query, by column.
        by_set: columns that may differ between the sets of one run.
        remarks: lines on how to read any comparison with it.
        n_prompts: number of prompts in each set, where GAS is printed.
    """

    name: str
    command: str
    half_units: Mapping[str, float]
    settings: Callable[[Row], Mapping[str, object]]
    by_set: tuple[str, ...]
    remarks: tuple[str, ...] = ()
    n_prompts: Mapping[str, int] = field(default_factory=dict)


#: Number of prompts in each set: the released ones, or those that the paper's templates make.
_PROMPTS = {"STS-B": 364, "SNLI": 317, "LLM (1)": 200, "LLM (2)": 200, "Template": 160}
#: ``_hash`` of the instruction in section 5.2; we may not copy the sentence.
_INSTRUCTION = "a7f803a705b6"


def _hash(sentence: str) -> str:
    """Hash of a sentence's words: the paper's has a full stop at its end, the authors' a colon."""
    words = re.findall("[a-z]+", sentence.lower())
    return hashlib.sha256(" ".join(words).encode()).hexdigest()[:12]


def _of_fairpair(row: Row) -> dict[str, object]:
    paper = FairPairOptions()
    unknown = ("temperature", "top_k", "n_folds", "filter_unit")
    loaded = ("level", "dtype", "quantisation", "backend", "revision")
    return {
        "probe_set": "common-sents",
        "n_samples": paper.n,
        "texts": texts_of(as_published=True),
        "decoding": "sample",
        "top_p": paper.top_p,
        "max_new_tokens": paper.max_new_tokens,
        "adapter": None,
        "instruction": None,
        "perturber": "gpt-3.5-turbo",
        "filter_limit": paper.filter_limit,
        **dict.fromkeys(("example", "n_left_out", *unknown, *loaded), NOT_KNOWN),
    }


def _of_disclosure(row: Row) -> dict[str, object]:
    probe, tune = ProbeOptions(), TuneOptions()
    is_tuned = row["adapter"] is not None
    settings: dict[str, object] = {
        "n_prompts": _PROMPTS[row["inputs"]],
        "word_list": probe.word_list,
        "dtype": "bfloat16" if is_tuned or "falcon" in row["model"] else "float16",
        "quantisation": "bitsandbytes nf4" if is_tuned else None,
        "backend": "transformers",
        **dict.fromkeys(("n_empty", "revision"), NOT_KNOWN),
    }
    if row["decoding"] is not None:  # else only probabilities were measured
        settings["max_new_tokens"] = probe.max_new_tokens
        settings["decoding"] = NOT_KNOWN if row["method"] == "Hyperparameter" else "greedy"
    if row["instruction"] is not None:
        is_theirs = _hash(row["instruction"]) == _INSTRUCTION
        instruction = row["instruction"] if is_theirs else "that of section 5.2"
        settings |= {"form": "prefix", "instruction": instruction}
    if is_tuned:  # section 5.3, Table 4 and appendix A.3
        names = ("rank", "alpha", "dropout", "learning_rate", "batch_prompts", "max_tokens")
        settings |= {name: getattr(tune, name) for name in names}
        settings |= {"n_steps": tune.steps, "losses": "sums"}
        settings |= {"tuned_on": "snli-train, stsb-train", "n_tuned_on": 13_292}
        settings |= {"dev_sets": "snli-validation, stsb-validation", "n_dev_prompts": 681}
        settings |= dict.fromkeys(("clip_norm", "distance_smoothing", "layers"), NOT_KNOWN)
    return settings


FAIRPAIR = Paper(
    "fairpair",
    "plumbline fairpair run common-sents --models fairpair --as-published",
    {"valid": 0.05, "B": 0.05, "V_pg": 0.05, "V_gp": 0.05, "F": 0.005},
    _of_fairpair,
    ("n_prompts", "n_left_out"),
    (
        "B and V are times 100; F is computed from the means of B and V over prompts, as the "
        "printed F may be; only the side `original` is compared",
        "section 4.1 names 200 folds of 100 samples: what Table 3 averages isn't clear",
    ),
)
DISCLOSURE = Paper(
    "disclosure",
    "plumbline disclosure probe stsb snli llm-1 llm-2 topics --models disclosure",
    dict.fromkeys(("GAS", "GLD", "ADD", "GAS (F)", "GAS (M)", "Delta"), 0.0005),
    _of_disclosure,
    ("probe_set", "n_prompts", "n_empty"),
    (
        "ADD: printed figures are logarithms; the paper gives neither their base nor its e. "
        "Measured ones are log10 of the mean ADD in nats, with e = 0",
        "GAS (F), GAS (M), Delta: of gendered continuations, by their first gendered word",
        "P(word) is that of the whole word in both of its forms, see docs/disclosure.md",
        "tuning: the paper doesn't give its layers, e, clipping and the use of its dev sets",
    ),
    _PROMPTS,
)
PAPERS = {paper.name: paper for paper in (FAIRPAIR, DISCLOSURE)}
