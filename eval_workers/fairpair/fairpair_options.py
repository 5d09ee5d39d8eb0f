"""Options of FairPair's sampling and measuring, for its commands and the pipeline."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field
from pydantic.dataclasses import dataclass

from plumbline.eval_workers.fairpair.perturbation.text_filter import TextFilter, Unit
from plumbline.eval_workers.models.sampling_contract import SamplingOptions
from plumbline.warehouse.errors import UsageProblem
from plumbline.warehouse.options import STRICT


def texts_of(as_published: bool) -> str:
    """Column ``texts`` of the tables of figures: the texts that Phi compares.

    >>> texts_of(False), texts_of(True)
    ('filtered', 'as-published')
    """
    return "as-published" if as_published else "filtered"


@dataclass(frozen=True, kw_only=True, config=STRICT)
class FigureOptions:
    """Options for measuring continuations.

    Phi compares continuations without their prompts (section 2 of the paper). By default both
    groups hold only texts with a valid perturbation; with ``as_published`` only the group of
    perturbations is filtered (section 3.3).

    The smallest p-value is 1 / (``n_permutations`` + 1). ``seed`` seeds folds, permutations and
    resamples; a prompt's draws do not depend on other prompts.

    Raises ``UsageProblem`` for values out of range.

    >>> FigureOptions(folds=1)
    Traceback (most recent call last):
    ...
    plumbline.warehouse.errors.UsageProblem: folds 1: 0 for single samples, or 2 and more
    """

    folds: Annotated[
        int, Field(ge=0, le=100_000, description="Folds of each side's samples; 0: none.")
    ] = 0
    level: Annotated[float, Field(gt=0, lt=1, description="Level of the intervals.")] = 0.95
    n_permutations: Annotated[
        int, Field(ge=1, le=1_000_000, description="Permutations of a test.")
    ] = 999
    n_resamples: Annotated[
        int, Field(ge=1, le=1_000_000, description="Resamples of an interval.")
    ] = 1000
    seed: Annotated[
        int, Field(ge=0, le=(1 << 32) - 1, description="Seed of samples, folds and tests.")
    ] = 0
    as_published: Annotated[
        bool, Field(description="Filter only perturbations, as the paper does.")
    ] = False

    filter_limit: Annotated[
        float,
        Field(gt=0, le=1, description="Largest valid Jaccard dissimilarity to the original."),
    ] = TextFilter.limit
    filter_unit: Annotated[
        Unit, Field(description="Count different words or different characters.")
    ] = TextFilter.unit

    def __post_init__(self) -> None:
        if self.folds == 1:
            raise UsageProblem(f"folds {self.folds}", "0 for single samples, or 2 and more")


@dataclass(frozen=True, kw_only=True, config=STRICT)
class FairPairOptions(FigureOptions):
    """Options for drawing (see ``SamplingOptions``) and measuring samples.

    An empty ``phi`` means the paper's functions, jaccard and vader, if they know the language.
    Raises ``UsageProblem`` for values out of range.
    """

    n: Annotated[int, Field(ge=2, le=100_000, description="Samples of each prompt and side.")] = 100
    temperature: Annotated[float, Field(gt=0, le=100, description="Temperature of sampling.")] = 1.0
    top_p: Annotated[float, Field(gt=0, le=1, description="Nucleus of sampling.")] = 0.9
    max_new_tokens: Annotated[int, Field(ge=1, le=100_000, description="Tokens of a sample.")] = 128
    instruction: Annotated[
        str | None,
        Field(description="Put before each prompt; chat models get one by default."),
    ] = None
    phi: Annotated[
        tuple[str, ...],
        Field(description="Scoring functions by commas; default: jaccard,vader."),
    ] = ()

    def __post_init__(self) -> None:
        super().__post_init__()
        _ = self.sampling()

    def text_filter(self) -> TextFilter:
        """The filter of perturbations."""
        return TextFilter(self.filter_limit, self.filter_unit)

    def sampling(self) -> SamplingOptions:
        """Options for drawing samples.

        >>> FairPairOptions(n=7).sampling() == SamplingOptions()
        True
        """
        return SamplingOptions(
            temperature=self.temperature,
            top_p=self.top_p,
            max_new_tokens=self.max_new_tokens,
            seed=self.seed,
            instruction=self.instruction or None,
        )


#: For the closed world, whose prompts end before one word: few samples of one token.
CLOSED_WORLD = FairPairOptions(n=50, max_new_tokens=1, n_permutations=199, n_resamples=300)
