"""Changes of named models: the latest version of each, compared with the version before."""

from __future__ import annotations

from plumbline.pipelines.report.estimates import finding
from plumbline.pipelines.report.facts import Facts
from plumbline.pipelines.report.model import interval, shown
from plumbline.pipelines.report.rows import Row, set_name
from plumbline.pipelines.report.sentences import moved
from plumbline.warehouse.errors import ModelChanged

_LATEST = "FROM model_version WHERE is_latest AND previous_key IS NOT NULL ORDER BY name;"


def version_changes(facts: Facts) -> list[Row]:
    """PD of each named model's latest version minus that of the version before, by benchmark.

    Rows of ``report/version_change.sql`` with the columns of view `model_version`. Differences are
    paired: both versions scored the pairs. Without a second version or metrics there are no rows.
    """
    latest = {row["model_key"]: row for row in facts.query(_LATEST)}
    measured = facts.metrics("pd", subset="all").where(model_key=tuple(latest)) if latest else []
    return [
        {**latest[pd["model_key"]], **change}
        for pd in measured
        for change in facts.rows(
            "version_change",
            epsilon=pd["epsilon_nats"],
            previous_key=latest[pd["model_key"]]["previous_key"],
            **{name: pd[name] for name in ("model_key", "benchmark", "groups")},
        )
    ]


def version_changed(row: Row) -> str:
    """A clause on how PD changed since the version before, from a row of ``version_changes``.

    >>> from datetime import date
    >>> row = {"model": "mine", "benchmark": "b", "groups": "female/male", "change": 7.0, "pd": 9.0,
    ...        "change_low": 6.0, "change_high": 8.0, "previous_scored_at": date(2026, 1, 31)}
    >>> version_changed(row)
    'mine on b since 2026-01-31: PD rose: +7.0 points (95% interval +6.0 to +8.0), now +9.0'
    """
    by, now = (shown(row[name], 1, signed=True) for name in ("change", "pd"))
    ends = interval(row, "change", 1, signed=True) or "no interval"
    since = f"{row['model']} on {set_name(row)} since {row['previous_scored_at']:%Y-%m-%d}"
    return f"{since}: PD {moved(finding(row, 'change'))}: {by} points ({ends}), now {now}"


def check_changes(changes: list[Row], most_points: float) -> list[str]:
    """The changes beyond ``most_points`` that are not sure to be, as clauses.

    Raises ``ModelChanged`` if a whole interval lies above ``most_points`` or below its negative.
    """
    beyond = [row for row in changes if abs(row["change"]) > most_points]
    sure = [
        row
        for row in beyond
        if finding(row, "change", null=most_points).verdict == "above"
        or finding(row, "change", null=-most_points).verdict == "below"
    ]
    if sure:
        said = "; ".join(map(version_changed, sure))
        raise ModelChanged(said, f"more than {most_points:g} points")
    return [f"{version_changed(row)}: perhaps more than {most_points:g} points" for row in beyond]
