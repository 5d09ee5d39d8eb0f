"""Samples of models that are loaded here: each forward pass holds prompts of one length."""

from __future__ import annotations

from collections.abc import Sequence

from plumbline.eval_workers.models.base import Tokens
from plumbline.eval_workers.models.continuer import Continuer
from plumbline.eval_workers.models.kinds.passes import LocalModel
from plumbline.eval_workers.models.local.drawing import Read, draw
from plumbline.eval_workers.models.sampling import SamplingOptions

#: Tokens whose keys and values are held at once while drawing, for each token of a forward pass.
_HELD = 16

#: What is read of a prompt, and its number.
_Draw = tuple[Tokens, int]


class LocalContinuer(LocalModel, Continuer):
    """A model loaded here that continues prompts; see ``Reader`` for what it raises."""

    def _with_special(self, prompt: Tokens) -> Tokens:
        """All that is read of a prompt."""
        return (self.identity.bos_token_id, *prompt)

    def _read(self, prompts: Sequence[Tokens]) -> Read:
        """The model behind prompts of one length, special tokens among theirs."""
        return Read(self._model, prompts)

    def _new_tokens(
        self, prompts: Sequence[Tokens], seeds: Sequence[int], options: SamplingOptions
    ) -> list[Tokens]:
        draws = [(self._with_special(prompt), i) for i, prompt in enumerate(prompts)]

        def end_of(draws: Sequence[_Draw], start: int, n_tokens: int) -> int:
            return _end_of_draws(draws, start, options.max_new_tokens, n_tokens)

        def run(batch: list[_Draw]) -> list[Tokens]:
            whole = [prompt for prompt, _ in batch]
            return draw(self._read, whole, [seeds[i] for _, i in batch], options, self._ends)

        ordered = sorted(draws, key=lambda one: (len(one[0]), one))
        found = self._in_passes(ordered, end_of, run, lambda one: len(one[0]))
        return [found[one] for one in draws]


def _end_of_draws(draws: Sequence[_Draw], start: int, n_new: int, n_tokens: int) -> int:
    """Where the pass of sorted draws that starts at ``start`` ends.

    Prompts have one length and are as many as memory holds.
    """
    length = len(draws[start][0])
    n_rows = max(1, min(n_tokens, _HELD * n_tokens // (length + n_new)))
    n_read, end = length, start + 1
    while end < min(start + n_rows, len(draws)) and len(draws[end][0]) == length:
        n_read += length * (draws[end][0] != draws[end - 1][0])
        if n_read > n_tokens:
            break
        end += 1
    return end
