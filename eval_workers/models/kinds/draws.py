"""Samples of models that are loaded here; a forward pass holds prompts of one length."""

from __future__ import annotations

from collections.abc import Sequence

from plumbline.eval_workers.models.base import Tokens
from plumbline.eval_workers.models.continuer import Continuer
from plumbline.eval_workers.models.kinds.passes import LocalModel
from plumbline.eval_workers.models.local.drawing import Read, draw
from plumbline.eval_workers.models.sampling import SamplingOptions

#: Tokens whose keys and values are held at once while drawing, per token of a forward pass.
_HELD = 16

#: A prompt with its special tokens, and its number.
_Draw = tuple[Tokens, int]


class LocalContinuer(LocalModel, Continuer):
    """A model loaded here that continues prompts; see ``TextReader`` for what it raises."""

    def _with_special(self, prompt: Tokens) -> Tokens:
        """The prompt with the special tokens around it."""
        return (self.identity.bos_token_id, *prompt)

    def _read(self, prompts: Sequence[Tokens]) -> Read:
        """The model's state after prompts of one length with their special tokens."""
        return Read(self._model, prompts)

    def _new_tokens(
        self, prompts: Sequence[Tokens], seeds: Sequence[int], options: SamplingOptions
    ) -> list[Tokens]:
        draws = [(self._with_special(prompt), i) for i, prompt in enumerate(prompts)]

        def end_of(draws: Sequence[_Draw], start: int, n_tokens: int) -> int:
            length = len(draws[start][0])
            n_rows = max(1, min(n_tokens, _HELD * n_tokens // (length + options.max_new_tokens)))
            n_read, end = length, start + 1
            while end < min(start + n_rows, len(draws)) and len(draws[end][0]) == length:
                n_read += length * (draws[end][0] != draws[end - 1][0])
                if n_read > n_tokens:
                    break
                end += 1
            return end

        def run(batch: list[_Draw]) -> list[Tokens]:
            read = [prompt for prompt, _ in batch]
            return draw(self._read, read, [seeds[i] for _, i in batch], options, self._ends)

        ordered = sorted(draws, key=lambda item: (len(item[0]), item))
        new = self._in_passes(ordered, run, lambda item: len(item[0]), end_of)
        return [new[item] for item in draws]
