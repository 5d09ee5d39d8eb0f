"""The released UnStereoEval scores as warehouse rows, for tests against the published tables."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa

from warehouse.store import Store

BENCHMARKS = ("USE-5", "USE-10", "USE-20", "Winobias", "Winogender")
_PREPROCESSED = {
    "Winobias": ("Winobias-dev", "Winobias-test"),
    **{name: (name,) for name in BENCHMARKS if name != "Winobias"},
}
_SCORES = {
    "USE-5": ("5words/revised_templates",),
    "USE-10": ("10words/revised_templates",),
    "USE-20": ("20words/revised_templates",),
    "Winobias": (
        "Winobias/coref__Winobias__templates.dev",
        "Winobias/coref__Winobias__templates.test",
    ),
    "Winogender": ("Winogender/coref__Winogender__templates",),
}


_LOCAL_NAMES = {
    "meta-llama/Llama-2-7b-hf": "/extra/ucinlp1/llama-2/hf_models/7b",
    "meta-llama/Llama-2-70b-hf": "/extra/ucinlp1/llama-2/hf_models/70b",
}


def _read(directory: Path, stems: Sequence[str], ending: str) -> pd.DataFrame:
    parts = [pd.read_csv(directory / f"{stem}{ending}", keep_default_na=False) for stem in stems]
    return pd.concat([p.assign(row=range(1, len(p) + 1), part=i) for i, p in enumerate(parts)])


def load(store: Store, data: Path, models: Sequence[str]) -> None:
    """Publish pairs, MaxPMI and the scores of ``models`` (hub ids) of all five sets.

    Score files and preprocessed sets are joined by template and its number of occurrence.
    """
    release = data / "unstereo-eval"
    for benchmark in BENCHMARKS:
        first = _scores(release, benchmark, models[0])
        _publish(store, "benchmark_pair", benchmark, _pairs(first, benchmark))
        sets = release / "data" / "datasets" / "preprocessed"
        max_pmi = _read(sets, _PREPROCESSED[benchmark], "-no-maxpmi-constraint.csv.gz")
        max_pmi = _with_id(max_pmi)
        rows = pd.DataFrame(
            {
                "corpus": "pile",
                "contrast": "she/he",
                "benchmark": benchmark,
                "pair_id": max_pmi["pair_id"],
                "max_pmi_nats": pd.to_numeric(max_pmi["max_gender_pmi"], errors="coerce"),
                "n_words": 1,
                "n_words_defined": 1,
            }
        )
        _publish(store, "pair_association", benchmark, rows)
        for model in models:
            _publish(store, "pair_score", model, _score_rows(release, benchmark, model))


def _publish(store: Store, table: str, unit: str, rows: pd.DataFrame) -> None:
    store.publish(
        table, pa.Table.from_pandas(rows, preserve_index=False), unit=unit, run_id="published"
    )


def _with_id(rows: pd.DataFrame) -> pd.DataFrame:
    number = rows.groupby("template").cumcount().astype(str)
    return rows.assign(pair_id=rows["template"] + "#" + number)


def _scores(release: Path, benchmark: str, model: str) -> pd.DataFrame:
    name = _LOCAL_NAMES.get(model, model).replace("/", "__")
    ending = f"__scores__{name}.csv.gz"
    rows = _read(release / "results", _SCORES[benchmark], ending)
    if "is_natural" in rows:
        rows = rows[rows["is_natural"]]
    return _with_id(rows)


def _pairs(scores: pd.DataFrame, benchmark: str) -> pd.DataFrame:
    return pd.DataFrame(
        {
            "benchmark": benchmark,
            "pair_id": scores["pair_id"],
            "template": scores["template"],
            "sentence_f": scores["F_template"],
            "sentence_m": scores["M_template"],
            "word": scores["word"],
            "is_natural": True if benchmark.startswith("USE") else None,
            "pronoun_first": scores["template"].str.startswith("{pronoun"),
            "source_file": benchmark,
            "source_row": scores["row"],
        }
    ).replace({np.nan: None})


def _score_rows(release: Path, benchmark: str, model: str) -> pd.DataFrame:
    scores = _scores(release, benchmark, model)
    return pd.DataFrame(
        {
            "model_key": model,
            "model": model,
            "benchmark": benchmark,
            "pair_id": scores["pair_id"],
            "text_id": scores["pair_id"],
            "logprob_f_nats": scores["F_logprob"].astype(float),
            "logprob_m_nats": scores["M_logprob"].astype(float),
            "n_tokens_f": scores["F_num_tokens"],
            "n_tokens_m": scores["M_num_tokens"],
            "run_id": "published",
        }
    )
