"""A model that knows nothing, to try a set-up: each word has the same probability.

It needs no package of the extra ``models``. The two sentences of a pronoun pair have equally many
words, so the model prefers neither: the metric US is 100%, and PD is 0.
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Collection, Sequence
from typing import NoReturn

from plumbline.eval_workers.models.instruction import Instruction
from plumbline.eval_workers.models.model_options import ModelOptions
from plumbline.eval_workers.models.scoring_contract import Identity, TextScore
from plumbline.warehouse.errors import UsageProblem

#: Number of words in the model's vocabulary.
_N_WORDS = 50_000
_REFUSED = ("adapter", "bos", "chat", "dtype", "pll", "quantisation", "revision", "tensor_parallel")


class DummyBackend:
    """The uniform model over words, which are separated by white space.

    A ``scoring_contract.Backend``. Raises ``UsageProblem`` for options of models with weights.

    >>> DummyBackend("dummy", ModelOptions()).score(["She wept."])[0].logprob_nats == 2 * -math.log(
    ...     _N_WORDS
    ... )
    True
    """

    n_parameters = None

    def __init__(self, model: str, options: ModelOptions) -> None:
        defaults = ModelOptions()
        for name in _REFUSED:
            if (value := getattr(options, name)) != getattr(defaults, name):
                problem = "the dummy model has no weights and no tokenizer"
                raise UsageProblem(f"--{name.replace('_', '-')} {value}", problem, "leave it out")
        self._pieces: dict[int, str] = {}
        self.identity = Identity(
            model=model,
            revision="1",
            backend="dummy",
            backend_version=f"uniform over {_N_WORDS:,} words",
            dtype="float64",
            bos_policy="none",
            bos_token_id=0,
            text_form=options.text_form,
        )

    def lead(self, instruction: Instruction) -> str:
        """The instruction's text before a prompt."""
        return instruction.prefix

    def score(self, texts: Sequence[str]) -> list[TextScore]:
        """Score each text, in the order given."""
        scores = []
        for words in map(str.split, texts):
            ids = tuple(zlib.crc32(word.encode("utf-8", "replace")) >> 1 for word in words)
            self._pieces.update(zip(ids, (f" {word}" for word in words), strict=True))
            logprobs = (-math.log(_N_WORDS),) * len(words)
            if words:
                scores.append(TextScore(math.fsum(logprobs), ids, logprobs))
            else:
                scores.append(TextScore(math.nan, problem="the text is empty"))
        return scores

    def pieces(self, token_ids: Collection[int]) -> dict[int, str]:
        """The text of each word; ``KeyError`` for a word that this object hasn't scored."""
        return {number: self._pieces[number] for number in token_ids}

    def continue_(self, *_: object) -> NoReturn:
        """Raises ``UsageProblem``: random words are not a continuation."""
        problem = "scores sentences and can't continue a text"
        raise UsageProblem("--model dummy", problem, "give a hub id or a directory of a model")


open_model = DummyBackend
