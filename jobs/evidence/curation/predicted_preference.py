"""Predicted changes of a model's preferences: a study's fitted slope times changes of leans."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from plumbline.warehouse.query.connection import rows_of
from plumbline.warehouse.query.finding import verdict
from plumbline.warehouse.query.method_validation import OWN, validation
from plumbline.warehouse.storage.store import Store

Row = dict[str, Any]
_RESPONSES = """
SELECT study, benchmark, response, response_low, response_high, n_seeds FROM dose_response
WHERE kind = 'gender' AND words = 'all' AND outcome = 'slope' AND contrast = $contrast
    AND corpus = $corpus AND ($study = '' OR $study IN (study, study || ':' || benchmark))
ORDER BY ALL
"""
#: Scatter of words about the fitted line: their residuals at the largest dose.
_SCATTER = """
WITH arm AS (
    SELECT a.seed, a.dose, p.word, p.mean_log_ratio_nats, d.delta_nats
    FROM intervention_arm AS a JOIN trained_key AS k USING (model)
    JOIN word_preference AS p USING (model_key) JOIN word_delta AS d USING (word)
    WHERE a.study = $study AND a.kind = 'gender' AND a.window_start = 0 AND a.window_end = 1
        AND p.benchmark = $benchmark AND d.corpus = $corpus AND d.contrast = $contrast
),
moved AS (
    SELECT
        e.seed, e.delta_nats AS x, e.mean_log_ratio_nats - s.mean_log_ratio_nats AS y
    FROM arm AS e JOIN arm AS s USING (seed, word)
    WHERE e.dose = (SELECT max(dose) FROM arm) AND s.dose = 0
),
of_seed AS (
    SELECT (regr_syy(y, x) - regr_sxy(y, x) ** 2 / regr_sxx(y, x)) / (count(*) - 2) AS variance
    FROM moved GROUP BY seed HAVING count(*) > 2 AND regr_sxx(y, x) > 0
)
SELECT sqrt(avg(variance)) AS scatter FROM of_seed
"""


@dataclass(frozen=True)
class Response:
    """The fitted response of a study: nats of preference per nat of delta.

    ``scatter`` is the standard deviation of words' changes about the fit, in nats, between two
    trainings with one seed.
    """

    study: str
    benchmark: str
    slope: float
    slope_se: float
    n_seeds: int
    scatter: float

    @property
    def name(self) -> str:
        """The study and benchmark."""
        return f"{self.study}:{self.benchmark}"


def fitted_response(
    store: Store, corpus: str, contrast: str, model_from: str = ""
) -> tuple[Response | None, str]:
    """The response of preferences to leans that a study fitted, or why there is none.

    ``dose_response`` has the change of the slope of preferences on delta if the sides of a contrast
    are exchanged in all documents. The exchange turns a slope b into -b, a change of -2b. So the
    returned slope is that change divided by -2.
    """
    from scipy.special import stdtrit

    key = {"corpus": corpus, "contrast": contrast}
    responses = rows_of(store.root, _RESPONSES, {**key, "study": model_from})
    names = [f"{row['study']}:{row['benchmark']}" for row in responses]
    if not responses:
        what = f"no study {model_from}" if model_from else "no study of a response"
        return None, f"{what} on {corpus} and {contrast}: plumbline intervene run"
    if len(responses) > 1:
        return None, f"there are several responses; --model-from {' or '.join(names)}"
    row = responses[0]
    ends = (row["response_low"], row["response_high"])
    if verdict(row["response"], *ends) not in ("above", "below"):
        return None, f"the response of {names[0]} can't be told from 0; more --seeds may show one"
    half = (row["response_high"] - row["response_low"]) / 2
    se = half / stdtrit(row["n_seeds"] - 1, 0.975) / 2
    study = {"study": row["study"], "benchmark": row["benchmark"]}
    scatter = rows_of(store.root, _SCATTER, {**key, **study})[0]["scatter"]
    if scatter is None:
        return None, f"{names[0]} has too few words for the scatter about its response"
    return Response(
        **study,
        slope=-row["response"] / 2,
        slope_se=float(se),
        n_seeds=row["n_seeds"],
        scatter=scatter,
    ), ""


def trusted_response(
    store: Store, corpus: str, contrast: str, model_from: str = ""
) -> tuple[Response | None, str]:
    """The fitted response if studies validate `counts` for predictions, else None; and why.

    The prediction for a word is the response times the change of its delta. It leaves out a shift
    that all words share, like the studies' outcome `words, own part`.
    """
    response, problem = fitted_response(store, corpus, contrast, model_from)
    studies = store.read("datamodelling_score").to_pylist()
    counts_validation = validation(studies, "counts", (OWN,))
    if response is None:
        return None, problem
    return response if counts_validation.is_trusted else None, str(counts_validation)


def predict(rows: list[Row], by: Response) -> None:
    """Add the predicted change of a model's preference, with its interval, to the rows of words.

    The prediction is the product of two estimates, the change of delta and the slope. Its variance
    is the product's plus the squared scatter of words about the fit, with Welch's degrees of
    freedom.
    """
    from scipy.special import stdtrit

    for row in rows:
        if row["part"] != "word" or row["change_nats"] is None:
            continue
        change, se, df = row["change_nats"], row["change_nats_se"], row["df"]
        from_change, from_slope = (by.slope * se) ** 2, (change * by.slope_se) ** 2
        variance = from_change + from_slope + (se * by.slope_se) ** 2 + by.scatter**2
        spread = from_change**2 / df + from_slope**2 / (by.n_seeds - 1)
        half = np.sqrt(variance) * (stdtrit(variance**2 / spread, 0.975) if spread else 1.96)
        predicted = by.slope * change
        row |= {
            "predicted_nats": predicted,
            "predicted_nats_low": float(predicted - half),
            "predicted_nats_high": float(predicted + half),
        }
