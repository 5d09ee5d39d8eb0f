"""How the training texts of models relate to a corpus, and the families of models."""

from __future__ import annotations

from collections.abc import Sequence

from plumbline.eval_workers.models.model_texts import Relation, known, relation
from plumbline.pipelines.report.facts import Facts
from plumbline.pipelines.report.rows import Row, Rows


class TrainingTexts:
    """The training texts of a warehouse's models, by their keys."""

    def __init__(self, facts: Facts) -> None:
        models = facts.rows("model")
        self._trained_on = {r["model_key"]: r["trained_on"] for r in models}
        self._names = {r["model_key"]: str(r["model"]).partition(" (")[0] for r in models}
        self._families = {r["model_key"]: r["family"] or "" for r in models}
        self._n_parameters = {r["model_key"]: r["n_parameters"] for r in models}
        self._adapted = {r["model_key"] for r in models if r["adapter"]}

    def relation(self, row: Row) -> Relation:
        """How the training text of a row's model relates to the row's corpus.

        For a model trained in this warehouse, the training corpus is on record. For others the
        relation follows from the model's name. With an adapter, which saw further text, it is
        `unknown`.
        """
        key, corpus = row["model_key"], row["corpus"]
        if trained_on := self._trained_on.get(key):
            return "same" if trained_on == corpus else "other"
        return "unknown" if key in self._adapted else relation(self._names.get(key, ""), corpus)

    def are_ours(self, rows: Sequence[Row]) -> bool:
        """True if all of the rows' models were trained in this warehouse."""
        return all(self._trained_on.get(row["model_key"]) for row in rows)

    def family(self, row: Row) -> str:
        """The family of a row's model; empty if none is known."""
        return self._families.get(row["model_key"], "")

    def place(self, row: Row) -> tuple[bool, str]:
        """The place of a row's family among families; models without one come last."""
        return not self.family(row), self.family(row).lower()

    def year(self, row: Row) -> int | None:
        """The year in which a row's model was described; ``None`` if the model isn't known."""
        described = known(self._names.get(row["model_key"], ""))
        return described.year if described else None

    def n_parameters(self, row: Row) -> int | None:
        """The number of parameters of a row's model; ``None`` if it wasn't counted."""
        return self._n_parameters.get(row["model_key"])

    def families(self, rows: Sequence[Row]) -> dict[str, Rows]:
        """Family -> the rows of its models, sorted by family; last, empty, those without one."""
        names = dict.fromkeys(map(self.family, sorted(rows, key=self.place)))
        return {name: Rows(row for row in rows if self.family(row) == name) for name in names}
