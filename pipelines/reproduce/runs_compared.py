"""Compare a paper's printed figures with your own runs, for the papers that released no results.

The query ``sql/reproduce/<paper>.sql`` returns each figure of a run, with the run's settings.

By default, `fairpair run` has the settings of FairPair's paper. The disclosure paper gives its
settings in sections 5.1 to 5.3, Table 4 and appendix A.3 (nf4 for QLoRA). The data types of the
weights are in the authors' scripts (dongxiangjue/Debias-LLMs). Other settings are ``NOT_KNOWN``.
"""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from plumbline.eval_workers.disclosure.set_probing import ProbeOptions
from plumbline.eval_workers.fairpair.fairpair_options import FairPairOptions, texts_of
from plumbline.eval_workers.models.model_lists import load
from plumbline.eval_workers.training.training_options import ALPHA, DROPOUT, MAX_TOKENS, TuneOptions
from plumbline.pipelines.reproduce.claims import Row
from plumbline.warehouse.errors import UsageProblem
from plumbline.warehouse.query.connection import rows_of, sql
from plumbline.warehouse.storage.store import Store

#: The name printed for a mean over models, which no run measures.
AVERAGE = "Average"
#: A setting that the paper does not give.
NOT_KNOWN = object()
#: Columns of the query that describe a figure. All other columns, except ``Paper.by_set``,
#: identify the run.
_OF_A_FIGURE = ("inputs", "method", "metric", "measured", "low", "high")
#: Outcomes: the interval contains the printed figure, doesn't contain it, or why that isn't known.
OUTCOMES = (HOLDS, OUTSIDE, NO_INTERVAL, NOT_DEFINED, NOT_MEASURED) = (
    *("agrees", "outside", "no interval"),
    *("not defined", "not run"),
)
#: Outcome of a printed figure without a run.
_NO_RUN = {
    **{"measured": None, "low": None, "high": None, "outcome": NOT_MEASURED, "run": None},
    **{"measured_model": None, "differs": "", "paper_unknown": "", "note": ""},
}


@dataclass(frozen=True)
class Paper:
    """A paper to compare runs with.

    Attributes:
        name: NAME in `plumbline reproduce NAME`; the paper's query and files have the same name.
        command: the command line that measures the models.
        half_units: for each metric, the largest rounding error of a printed figure.
        settings: function that takes a row of the query and returns the paper's settings as a dict.
        by_set: columns of the query whose values depend on the set of prompts, even in one run.
        remarks: lines to print whenever runs are compared with the paper.
        n_prompts: number of prompts in each set, if the paper prints GAS.
    """

    name: str
    command: str
    half_units: Mapping[str, float]
    settings: Callable[[Row], Mapping[str, object]]
    by_set: tuple[str, ...]
    remarks: tuple[str, ...] = ()
    n_prompts: Mapping[str, int] = field(default_factory=dict)


#: Number of prompts in each set, as released or as the paper's templates make them.
_PROMPTS = {"STS-B": 364, "SNLI": 317, "LLM (1)": 200, "LLM (2)": 200, "Template": 160}
#: ``_hash`` of the instruction in section 5.2. We may not copy the sentence itself.
_INSTRUCTION = "a7f803a705b6"


def _hash(sentence: str) -> str:
    """Hash only a sentence's words, since the paper and its code use different punctuation."""
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
    if row["decoding"] is not None:  # None if only probabilities were measured
        settings["max_new_tokens"] = probe.max_new_tokens
        settings["decoding"] = NOT_KNOWN if row["method"] == "Hyperparameter" else "greedy"
    if row["instruction"] is not None:
        is_theirs = _hash(row["instruction"]) == _INSTRUCTION
        instruction = row["instruction"] if is_theirs else "the one in section 5.2"
        settings |= {"form": "prefix", "instruction": instruction}
    if is_tuned:  # settings from the paper's section 5.3, Table 4 and appendix A.3
        names = ("rank", "learning_rate", "batch_prompts")
        settings |= {name: getattr(tune, name) for name in names}
        settings |= {"alpha": ALPHA, "dropout": DROPOUT, "max_tokens": MAX_TOKENS}
        settings |= {"n_steps": tune.steps, "losses": "sums"}
        settings |= {"tuned_on": "snli-train, stsb-train", "n_tuned_on": 13_292}
        settings |= {"dev_sets": "snli-validation, stsb-validation", "n_dev_prompts": 681}
        settings |= dict.fromkeys(("clip_norm", "layers"), NOT_KNOWN)
    return settings


FAIRPAIR = Paper(
    "fairpair",
    "plumbline fairpair run common-sents --model ID_OR_PATH --as-published",
    {"valid": 0.05, "B": 0.05, "V_pg": 0.05, "V_gp": 0.05, "F": 0.005},
    _of_fairpair,
    ("n_prompts", "n_left_out"),
    (
        "B and V are multiplied by 100; F is computed from the means of B and V over prompts, as "
        "the printed F may be; only the side `original` is compared",
        "section 4.1 names 200 folds of 100 samples: what Table 3 averages isn't clear",
    ),
)
DISCLOSURE = Paper(
    "disclosure",
    "plumbline disclosure probe stsb snli llm-1 llm-2 topics --model ID_OR_PATH",
    dict.fromkeys(("GAS", "GLD", "ADD", "GAS (F)", "GAS (M)", "Delta"), 0.0005),
    _of_disclosure,
    ("probe_set", "n_prompts", "n_empty"),
    (
        "ADD: printed figures are logarithms; the paper gives neither their base nor its e. "
        "Measured ones are log10 of the mean ADD in nats, with e = 0",
        "GAS (F), GAS (M), Delta: of gendered continuations, by their first gendered word",
        "P(word) is the probability of the whole word in both its forms, see docs/disclosure.md",
        "tuning: the paper gives no layers, e or clipping, and not how its dev sets are used",
    ),
    _PROMPTS,
)
PAPERS = {paper.name: paper for paper in (FAIRPAIR, DISCLOSURE)}


@dataclass(frozen=True)
class MeasuredRun:
    """A run, its settings that differ from the paper's, and those that the paper doesn't give."""

    number: int
    printed_model: str
    model: str
    differs: tuple[str, ...]
    unknown: tuple[str, ...]

    def lines(self) -> Iterator[str]:
        differs = "; ".join(self.differs) or "nothing that is known"
        model = f"{self.printed_model} by {self.model}"
        yield f"run {self.number}, {model}: differs in {differs}"
        if self.unknown:
            yield f"  settings that the paper doesn't give: {'; '.join(self.unknown)}"


def measured(
    paper: Paper, store: Store | None, printed: Sequence[Row], given: Iterable[str]
) -> tuple[list[dict[str, Any]], list[MeasuredRun]]:
    """Compare a paper's printed figures with the runs in a warehouse, as ``compare`` does.

    If there is no warehouse or no run, all comparisons have the outcome ``NOT_MEASURED``.
    """
    rows = rows_of(store.root, sql(f"reproduce/{paper.name}")) if store else []
    return compare(paper, printed, rows, printed_names(paper, printed, given))


def printed_names(paper: Paper, printed: Iterable[Row], given: Iterable[str]) -> dict[str, str]:
    """Map the names of models in the warehouse to the names that the paper prints.

    Names come from the paper's list of models, and from ``given``, which has texts PRINTED=MODEL.
    Raises ``UsageProblem`` for any other text, or if the paper doesn't print the name PRINTED.

    >>> from plumbline.pipelines.reproduce.runs_compared import FAIRPAIR
    >>> printed_names(FAIRPAIR, [{"model": "GPT2"}], ["gpt2=models/tiny"])["tiny"]
    'GPT2'
    """
    spelled = {row["model"].casefold(): row["model"] for row in printed}
    listed = {m.id: (m.name or m.id).casefold() for m in load(paper.name)}
    names = {model: spelled[name] for model, name in listed.items() if name in spelled}
    for option in given:
        name, equals, model = option.partition("=")
        if not (equals and model and name.strip().casefold() in spelled):
            printed_models = ", ".join(sorted(set(spelled.values()) - {AVERAGE}))
            fix = f"give PRINTED=MODEL; the paper prints {printed_models}"
            raise UsageProblem(f"--as {option}", "doesn't map a printed name to a model", fix)
        for place in (model.strip(), Path(model.strip()).name):
            names[place] = spelled[name.strip().casefold()]
    return names


def compare(
    paper: Paper, printed: Sequence[Row], rows: Sequence[Row], names: Mapping[str, str]
) -> tuple[list[dict[str, Any]], list[MeasuredRun]]:
    """Compare each printed figure with every run of its model. Return the comparisons and the runs.

    ``names`` maps a model's name in the warehouse to its printed name. A printed figure agrees
    if our interval contains a value that rounds to the printed figure.

    A comparison has the columns of the printed figure, and these:

    - ``measured``, ``low``, ``high``: our figure and its interval; None if undefined or infinite.
    - ``outcome``: one of ``OUTCOMES``.
    - ``run``, ``measured_model``: the run's number and model; None if there is no run.
    - ``differs``: the settings that differ from the paper's.
    - ``paper_unknown``: the run's settings that the paper doesn't give.
    - ``note``: differing or unknown settings, but only those that depend on the set of prompts.
    """
    of_a_figure = {*_OF_A_FIGURE, *paper.by_set}
    runs: dict[str, MeasuredRun] = {}
    found: dict[tuple[str, ...], list[tuple[MeasuredRun, Row]]] = {}
    for row in rows:
        if name := names.get(row["model"]):
            key = repr({column: v for column, v in row.items() if column not in of_a_figure})
            if key not in runs:
                settings = {c: v for c, v in paper.settings(row).items() if c not in of_a_figure}
                runs[key] = MeasuredRun(len(runs) + 1, name, row["model"], *_diff(row, settings))
            found.setdefault(_key({**row, "model": name}), []).append((runs[key], row))
    compared = []
    for figure in printed:
        matches = [{**figure, **_compared(paper, figure, *m)} for m in found.get(_key(figure), [])]
        note = "mean of the printed models" if figure["model"] == AVERAGE else ""
        compared += matches or [{**figure, **_NO_RUN, "differs": note, "note": note}]
    return compared, list(runs.values())


def _key(row: Row) -> tuple[str, ...]:
    return row["inputs"], row["method"], row["model"].casefold(), row["metric"]


def _compared(paper: Paper, figure: Row, run: MeasuredRun, row: Row) -> dict[str, Any]:
    low, high = (math.nan if row[end] is None else row[end] for end in ("low", "high"))
    half = paper.half_units.get(figure["metric"], 0.0) + 1e-9
    if row["measured"] is None:
        outcome = NOT_DEFINED
    elif math.isnan(low) or math.isnan(high):
        outcome = NO_INTERVAL
    else:
        outcome = HOLDS if low - half <= figure["value"] <= high + half else OUTSIDE
    settings = {c: v for c, v in paper.settings(row).items() if c in paper.by_set}
    differs, unknown = _diff(row, settings)
    of_figure = [*differs, *(line for line in unknown if not line.endswith(" 0"))]
    return {
        "measured": row["measured"],
        "low": low if math.isfinite(low) else None,
        "high": high if math.isfinite(high) else None,
        "outcome": outcome,
        "run": run.number,
        "measured_model": run.model,
        "differs": "; ".join([*run.differs, *filter(None, [", ".join(of_figure)])]),
        "paper_unknown": "; ".join(run.unknown),
        "note": ", ".join(of_figure),
    }


def _diff(row: Row, settings: Mapping[str, object]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    differs, unknown = list[str](), list[str]()
    for column, value in settings.items():
        ours = f"{column} {_shown(row[column])}"
        if value is NOT_KNOWN:
            unknown += [ours] * (row[column] is not None)
        elif not _same(row[column], value):
            differs.append(f"{ours} (paper: {_shown(value)})")
    return tuple(differs), tuple(unknown)


def _same(value: object, expected: object) -> bool:
    if isinstance(value, str) and isinstance(expected, str):
        return value.startswith(expected)  # our value may end with library versions
    return value == expected


def _shown(value: object) -> str:
    return "none" if value is None else f"{value:g}" if isinstance(value, float) else f"{value}"


def shown_rows(compared: Sequence[Row]) -> list[Row]:
    """Sort comparisons for printing, and remove the long columns about models and settings.

    Figures that are outside a run's interval come first. Figures that no run measured come last.
    """
    order = sorted(compared, key=lambda row: (row["run"] is None, row["outcome"] != OUTSIDE))
    long = ("measured_model", "differs", "paper_unknown")
    return [{name: v for name, v in row.items() if name not in long} for row in order]


def tally(compared: Sequence[Row]) -> Iterator[str]:
    """For each outcome, yield how many printed figures have it, and in how many runs.

    A figure that was measured in several runs may count for several outcomes.

    >>> one = {"table": 1, "inputs": "s", "method": "m", "model": "a", "metric": "GAS"}
    >>> list(tally([{**one, "outcome": HOLDS, "run": run} for run in (1, 2)]))
    ['1 figure in 2 runs: agrees']
    """
    for outcome in OUTCOMES:
        alike = [row for row in compared if row["outcome"] == outcome]
        n_runs = len({row["run"] for row in alike} - {None})
        n = len({(row["table"], *_key(row)) for row in alike})
        where = f" in {n_runs:,} runs" if n_runs > 1 else ""
        if n:
            yield f"{n:,} figure{'' if n == 1 else 's'}{where}: {outcome}"
