"""Define sampling for every backend: how a prompt and a seed determine new text.

Each sample has its own seed, made from the options' seed, the prompt as sent and the sample's
number. So a sample doesn't depend on the number of samples or on the batch.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol

from plumbline.eval_workers.models.scoring_contract import NONE, Instruction, Model, short_hash
from plumbline.warehouse.errors import UsageProblem

Finish = Literal["stop", "length"]


@dataclass(frozen=True)
class SamplingOptions:
    """Options for drawing new tokens. The defaults are FairPair's.

    Logits are divided by ``temperature``. Then the ``top_k`` most likely tokens are kept. Of these
    tokens, the most likely ones are kept until their total probability reaches ``top_p``. If
    ``top_k`` or ``top_p`` is ``None``, it removes no token. With ``greedy``, the most likely token
    is taken, and the temperature, ``top_k``, ``top_p`` and the seed are ignored. A sample ends with
    the model's end token, or is cut at ``max_new_tokens``. Raises ``UsageProblem`` for values out
    of range.
    """

    temperature: float = 1.0
    top_p: float | None = 0.9
    top_k: int | None = None
    max_new_tokens: int = 128
    seed: int = 0
    greedy: bool = False
    instruction: Instruction = NONE

    def __post_init__(self) -> None:
        if not (math.isfinite(self.temperature) and self.temperature > 0):
            fix = "for the most likely token use greedy decoding"
            raise UsageProblem(f"temperature {self.temperature:g}", "has to be above 0", fix)
        if self.top_p is not None and not 0 < self.top_p <= 1:
            raise UsageProblem(f"top_p {self.top_p:g}", "has to be above 0 and at most 1")
        if self.top_k is not None and self.top_k < 1:
            raise UsageProblem(f"top_k {self.top_k}", "has to be 1 or more")
        if self.max_new_tokens < 1:
            raise UsageProblem(f"max_new_tokens {self.max_new_tokens}", "has to be 1 or more")

    def row(self) -> dict[str, Any]:
        """Return the columns of table ``sampling``, without ``sampling_key`` and ``run_id``.

        >>> SamplingOptions(greedy=True, max_new_tokens=9).row()["temperature"] is None
        True
        """
        drawn, instruction = not self.greedy, self.instruction
        return {
            "method": "sample" if drawn else "greedy",
            "temperature": float(self.temperature) if drawn else None,
            "top_p": None if self.top_p is None or self.greedy else float(self.top_p),
            "top_k": self.top_k if drawn else None,
            "max_new_tokens": self.max_new_tokens,
            "seed": self.seed if drawn else 0,
            "instruction": instruction.text,
            "form": None if instruction.text is None else instruction.form,
            "instruction_key": instruction.key,
        }

    @property
    def key(self) -> str:
        """Hash of all options that can change a sample (16 hex digits).

        >>> SamplingOptions().key == SamplingOptions(top_k=9).key
        False
        >>> SamplingOptions(greedy=True).key == SamplingOptions(greedy=True, top_k=9).key
        True
        """
        row = self.row()
        # Older keys don't include the form, because `prefix` was then the only form.
        del row["instruction_key"]
        if row["form"] in (None, "prefix"):
            del row["form"]
        return short_hash(row)

    def seeded(self, text: str, sample: int) -> SeededPrompt:
        """Return the prompt ``text`` with the number of a sample (from 0) and the sample's seed.

        Seeds are below 2^53. Every JSON reader keeps such numbers exactly.

        >>> seeds = {SamplingOptions(seed=s).seeded("It", k).seed for s in (0, 1) for k in range(9)}
        >>> len(seeds)
        18
        """
        place = short_hash([self.seed, short_hash([text]), sample])
        return SeededPrompt(text, sample, int(place, 16) >> 11)


@dataclass(frozen=True, order=True)
class SeededPrompt:
    """A sample to draw: the prompt as sent to the model, the sample's number and its seed."""

    text: str
    sample: int
    seed: int

    @property
    def text_id(self) -> str:
        """Hash of the prompt as sent (16 hex digits)."""
        return short_hash([self.text])


@dataclass(frozen=True)
class Sample:
    """The continuation of a prompt. If it has a ``problem``, its other fields have no meaning.

    Attributes:
        text: the new text, without the prompt. It is empty if the model ended at once.
        finish: `stop` if the model ended the text, `length` if the text was cut at the limit.
        n_tokens: number of new tokens, without the end token; ``None`` if unknown.
    """

    text: str = ""
    finish: Finish = "stop"
    n_tokens: int | None = None
    problem: str | None = None


class SamplingModel(Model, Protocol):
    """A model that continues prompts."""

    def continue_(self, prompts: Sequence[SeededPrompt], options: SamplingOptions) -> list[Sample]:
        """Return a sample for each prompt, in the order given (loads the weights).

        If a prompt can't be continued, for example because it leaves no room for
        ``max_new_tokens``, its sample has a problem.
        """
