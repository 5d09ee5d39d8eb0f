"""The papers on FairPair and on disclosure: their settings, printed figures and claims.

FairPair's settings are the defaults of our command. Those of disclosure are in its paper (sections
5.1 to 5.3, Table 4, appendix A.3; QLoRA's base is in nf4); types of weights are in the authors'
scripts (dongxiangjue/Debias-LLMs). Settings without a source are ``NOT_KNOWN``.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib import resources
from pathlib import Path

from plumbline.eval_workers.disclosure.probe_options import ProbeOptions
from plumbline.eval_workers.fairpair.fairpair_options import FairPairOptions, texts_of
from plumbline.eval_workers.models.model_lists import load
from plumbline.eval_workers.training.mitigation.tuning_options import TuneOptions
from plumbline.pipelines.reproduce.beside_runs import (
    AVERAGE,
    NOT_KNOWN,
    Beside,
    MeasuredRun,
    Paper,
    Printed,
    Row,
    compare,
    misfit_averages,
    misfit_tables,
    read,
)
from plumbline.pipelines.reproduce.printed_claims import (
    DISCLOSURE_CLAIMS,
    DISCLOSURE_TABLES,
    FAIRPAIR_CLAIMS,
    FAIRPAIR_TABLES,
    counted,
)
from plumbline.warehouse.errors import UsageProblem
from plumbline.warehouse.query.connection import rows_of, sql
from plumbline.warehouse.storage.store import Store

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


def _misfits_of_fairpair(printed: Sequence[Printed]) -> list[str]:
    return [*misfit_averages(printed), *counted(FAIRPAIR_CLAIMS, FAIRPAIR_TABLES, printed)]


def _misfits_of_disclosure(printed: Sequence[Printed]) -> list[str]:
    n_all, n_broken = Counter[str](), Counter[str]()
    for p in {p.cell: p for p in printed if p.metric == "GAS" and p.inputs in _PROMPTS}.values():
        n_prompts = _PROMPTS[p.inputs]
        n_all[p.method] += 1
        if abs(round(p.value * n_prompts) / n_prompts - p.value) >= 0.0005 + 1e-9:
            n_broken[p.method] += 1
    methods = ", ".join(f"{method} {n} of {n_all[method]}" for method, n in n_broken.items())
    broken = [f"GAS is not a whole number of the set's prompts: {methods}"] if methods else []
    claims = counted(DISCLOSURE_CLAIMS, DISCLOSURE_TABLES, printed)
    return [*misfit_tables(printed), *broken, *claims]


def _claims_of_fairpair(store: Store, names: Mapping[str, str]) -> list[str]:
    """Lines on the t-test and the lengths of texts in section 4.1, for the side `original`."""
    from plumbline.pipelines.report.findings.sentences import t_tested
    from plumbline.pipelines.report.model import estimate
    from plumbline.pipelines.report.rows import Rows

    sets = [
        {**row, "model": names[row["model"]]}
        for row in rows_of(store.root, sql("report/fairpair_set"))
        if row["model"] in names
        and (row["subset"], row["side"]) == ("all", "original")
        and row["probe_set"].startswith("common-sents")
    ]
    if not sets:
        return []
    lines = ["Section 4.1: B differs from V_pg for all models but GPT2"]
    for group in Rows(sets).groups("probe_set", "phi", "texts", "n_folds"):
        lines += [f"  {line}" for line in filter(None, [t_tested(group)])]
    lines.append(
        "Section 4.1: lengths of p(g(x)) and g(p(x)) don't differ (here: both groups filtered)"
    )
    keys = ("probe_set", "model_key", "sampling_key", "perturber")
    models = {tuple(row[key] for key in keys): row["model"] for row in sets}
    for row in rows_of(store.root, sql("report/fairpair_compared_length")):
        model = models.get(tuple(row[key] for key in keys))
        if model and row["side"] == "original":
            more = estimate(row, "difference").text
            lines.append(f"  {row['probe_set']}, {model}: p(g(x)) less g(p(x)) {more} words")
    return lines


PAPERS = {
    "fairpair": Paper(
        "fairpair",
        "fairpair",
        "plumbline fairpair run common-sents --models fairpair --as-published",
        {"valid": 0.05, "B": 0.05, "V_pg": 0.05, "V_gp": 0.05, "F": 0.005},
        _of_fairpair,
        ("n_prompts", "n_left_out"),
        _misfits_of_fairpair,
        (
            "B and V are times 100; F is computed from the means of B and V over prompts, as the "
            "printed F may be; only the side `original` is compared",
            "section 4.1 names 200 folds of 100 samples: what Table 3 averages isn't clear",
        ),
        _claims_of_fairpair,
    ),
    "disclosure": Paper(
        "disclosure",
        "disclosure",
        "plumbline disclosure probe stsb snli llm-1 llm-2 topics --models disclosure",
        dict.fromkeys(("GAS", "GLD", "ADD", "GAS (F)", "GAS (M)", "Delta"), 0.0005),
        _of_disclosure,
        ("probe_set", "n_prompts", "n_empty"),
        _misfits_of_disclosure,
        (
            "ADD: printed figures are logarithms; the paper gives neither their base nor its e. "
            "Measured ones are log10 of the mean ADD in nats, with e = 0",
            "GAS (F), GAS (M), Delta: of gendered continuations, by their first gendered word",
            "P(word) is that of the whole word in both of its forms, see docs/disclosure.md",
            "tuning: the paper doesn't give its layers, e, clipping and the use of its dev sets",
        ),
    ),
}


def figures(paper: Paper, published: Path | None) -> list[Printed]:
    """A paper's packaged figures, or those of the CSV file ``published``. Raises as ``read``.

    >>> len(figures(PAPERS["fairpair"], None)), len(figures(PAPERS["disclosure"], None))
    (62, 486)
    """
    if published:
        return read(published)
    with resources.as_file(resources.files(__package__) / f"{paper.name}.csv") as path:
        return read(path)


def printed_names(paper: Paper, printed: Iterable[Printed], given: Iterable[str]) -> dict[str, str]:
    """The name that the paper prints, by the name of a model in the warehouse.

    Names are those of the paper's list of models, and of ``given``, which has texts PRINTED=MODEL.
    Raises ``UsageProblem`` for a text of another form and for a name that isn't printed.

    >>> some = [Printed(3, "common-sents", "jaccard", "GPT2", "B", 85.8)]
    >>> printed_names(PAPERS["fairpair"], some, ["gpt2=models/tiny"])["tiny"]
    'GPT2'
    """
    spelled = {figure.model.casefold(): figure.model for figure in printed}
    listed = {m.id: m.name.casefold() for m in load(paper.models)}
    names = {model: spelled[name] for model, name in listed.items() if name in spelled}
    for option in given:
        name, equals, model = option.partition("=")
        if not (equals and model and name.strip().casefold() in spelled):
            printed_models = ", ".join(sorted(set(spelled.values()) - {AVERAGE}))
            fix = f"give PRINTED=MODEL, printed are {printed_models}"
            raise UsageProblem(f"--as {option}", "doesn't map a printed name to a model", fix)
        for place in (model.strip(), Path(model.strip()).name):
            names[place] = spelled[name.strip().casefold()]
    return names


@dataclass(frozen=True)
class FiguresBeside:
    """Every printed figure beside the runs of a warehouse, those runs, and lines about them.

    Attributes:
        claims: claims that only runs can check; empty without runs.
        how_to_run: without runs, how to get some; else empty.
    """

    beside: list[Beside]
    runs: list[MeasuredRun]
    claims: list[str]
    how_to_run: list[str]

    @property
    def n_missing(self) -> int:
        """Number of figures without a run, not counting means over the paper's models."""
        return sum(b.run is None and b.printed.model != AVERAGE for b in self.beside)


def measured(
    paper: Paper, store: Store | None, printed: Sequence[Printed], given: Iterable[str]
) -> FiguresBeside:
    """Compare printed figures with the runs of a warehouse, see ``compare``; writes nothing.

    No warehouse is the same as one without runs: no figure is measured.
    """
    names = printed_names(paper, printed, given)
    rows = rows_of(store.root, sql(f"reproduce/{paper.name}")) if store else []
    beside, runs = compare(paper, printed, rows, names)
    if store and runs:
        return FiguresBeside(beside, runs, paper.claims(store, names), [])
    others = ", ".join(sorted({row["model"] for row in rows}))
    name = next((p.model for p in printed), "PRINTED")
    where = f"{store.root}" if store else "no warehouse yet"
    lines = [f"No run of the paper's models and sets ({where}): the next line makes some"]
    if others:
        lines.append(f"There are runs of {others}: let one stand for a printed model, as in")
    else:
        lines.append("Or run a model of your own and let it stand for a printed one, as in")
    lines[-1] += f' --as "{name}={others.split(", ")[0] or "MODEL"}"'
    return FiguresBeside(beside, runs, [], lines)
