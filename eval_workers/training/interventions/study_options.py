"""Arms of an intervention: trainings by kind of exchange, dose and seed."""

from __future__ import annotations

import dataclasses
import math
from typing import Annotated

from pydantic import Field
from pydantic.dataclasses import dataclass

from plumbline.eval_workers.training.interventions.changed_shards import InterventionOptions
from plumbline.eval_workers.training.training_options import LearnerOptions
from plumbline.warehouse.errors import UsageProblem
from plumbline.warehouse.options import STRICT

#: Kinds of exchange: she and he, in all sentences or in some, or two words that should not matter.
GENDER, AIMED, PLACEBO = "gender", "aimed", "placebo"


@dataclasses.dataclass(frozen=True)
class Arm:
    """One training: kind and dose of the exchange, part of the training, and seed."""

    kind: str
    dose: float
    seed: int
    start: float = 0.0
    end: float = 1.0

    def __str__(self) -> str:
        part = "" if self.is_whole else f" from {self.start:g} to {self.end:g}"
        return f"{self.kind}, dose {self.dose:g}{part}, seed {self.seed}"

    @property
    def is_whole(self) -> bool:
        """True if the changed text is read throughout the training."""
        return (self.start, self.end) == (0, 1)


@dataclass(frozen=True, kw_only=True, config=STRICT)
class StudyOptions(LearnerOptions):
    """The arms of an intervention, and what is trained in each.

    Raises ``UsageProblem`` unless the doses are 0 and others up to 1, or for an invalid window.
    """

    doses: Annotated[str, Field(description="Shares of the documents: numbers with commas.")] = (
        "0,0.25,0.5,0.75,1"
    )
    seeds: Annotated[int, Field(ge=1, le=1000, description="Trainings of each dose.")] = 5
    near: Annotated[
        str,
        Field(
            description="Words with commas: in trainings of their own, change only the sentences "
            "that hold one of them, with the largest dose."
        ),
    ] = ""
    windows: Annotated[
        str,
        Field(
            description="Parts of the training with commas, such as 0-0.5: in trainings of their "
            "own, read the largest dose only then, and the unchanged text before and after."
        ),
    ] = ""
    placebo: Annotated[
        str,
        Field(
            description="Two words to exchange in trainings of their own, with the largest dose; "
            "empty: none."
        ),
    ] = "however,moreover"

    def __post_init__(self) -> None:
        if len(self.numbers) < 2:
            raise UsageProblem(
                f"doses {self.doses!r}", "are fewer than two", "give such as 0,0.5,1"
            )
        if self.numbers[0]:
            raise UsageProblem(f"doses {self.doses!r}", "hold no 0", "give 0 to compare with")
        _ = self.parts

    @property
    def numbers(self) -> tuple[float, ...]:
        """The doses, each once, from the smallest.

        >>> StudyOptions(doses="1,0,0.5").numbers
        (0.0, 0.5, 1.0)
        """
        try:
            doses = sorted({float(dose) for dose in self.doses.split(",")})
        except ValueError:
            doses = [math.nan]
        if not 0 <= doses[0] <= doses[-1] <= 1:
            fix = "give numbers from 0 to 1 with commas, such as 0,0.5,1"
            raise UsageProblem(f"doses {self.doses!r}", "are not shares of documents", fix)
        return tuple(doses)

    @property
    def parts(self) -> tuple[tuple[float, float], ...]:
        """Start and end of the windows, as shares of the training's steps.

        >>> StudyOptions(windows="0-0.5, 0.5-1").parts
        ((0.0, 0.5), (0.5, 1.0))
        """
        parts = []
        for window in filter(None, map(str.strip, self.windows.split(","))):
            try:
                start, end = (float(share) for share in window.split("-", 1))
            except ValueError:
                start, end = math.nan, math.nan
            if not 0 <= start < end <= 1:
                fix = "give shares of the training such as 0-0.5"
                raise UsageProblem(f"windows {self.windows!r}", f"{window!r} is not a part", fix)
            parts.append((start, end))
        return tuple(parts)

    def arms(self) -> list[Arm]:
        """All trainings, seed after seed; dose 0 is the unchanged text for every kind.

        >>> for arm in StudyOptions(doses="0,1", seeds=1, near="nurse", windows="0-0.5").arms():
        ...     print(arm)
        gender, dose 0, seed 0
        gender, dose 1, seed 0
        gender, dose 1 from 0 to 0.5, seed 0
        aimed, dose 1, seed 0
        placebo, dose 1, seed 0
        """
        largest = self.numbers[-1]
        arms = []
        for seed in range(self.seeds):
            arms += [Arm(GENDER, dose, seed) for dose in self.numbers]
            arms += [Arm(GENDER, largest, seed, *part) for part in self.parts]
            arms += [Arm(AIMED, largest, seed)] if self.near else []
            arms += [Arm(PLACEBO, largest, seed)] if self.placebo else []
        return arms

    def changes(self, arm: Arm) -> InterventionOptions:
        """Options of the exchange in an arm's text."""
        placebo = self.placebo if arm.kind == PLACEBO else ""
        near = self.near if arm.kind == AIMED else ""
        return InterventionOptions(dose=arm.dose, near=near, placebo=placebo)
