"""The base class of backends that continue prompts: it encodes prompts and decodes new tokens.

A prompt is encoded like a scored text, and the backend puts the same BOS before it; for an
encoder-decoder it is encoded as the encoder's input. A backend gets token ids and returns new ones;
it never sees a text. A continuation is defined in ``sampling_contract``.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from functools import cached_property
from typing import Any

from transformers import GenerationConfig

from plumbline.eval_workers.models.local import loading as loading
from plumbline.eval_workers.models.local.scorer import Scorer
from plumbline.eval_workers.models.sampling_contract import Draw, Finish, Sample, SamplingOptions
from plumbline.eval_workers.models.scoring_contract import Tokens
from plumbline.warehouse.errors import BadInput


class Continuer(Scorer):
    """A language model that scores texts from left to right and continues prompts.

    The n-gram backend is one, too, and refuses to continue.
    """

    @abstractmethod
    def _new_tokens(
        self, prompts: Sequence[Tokens], seeds: Sequence[int], options: SamplingOptions
    ) -> Sequence[Tokens | str]:
        """Each prompt's new tokens, up to and including the first end token; or its problem.

        The prompts come without BOS. The context has room for ``options.max_new_tokens``.
        """

    def continue_(self, draws: Sequence[Draw], options: SamplingOptions) -> list[Sample]:
        """A sample for each draw, in the order given; see ``sampling_contract.SamplingModel``."""
        n_vocabulary, n_new = self._n_vocabulary, options.max_new_tokens
        texts = {d.text for d in draws}
        encoded = {text: self._prompt(text, n_new, n_vocabulary) for text in texts}
        problems = {text: ids for text, ids in encoded.items() if isinstance(ids, str)}
        samples = {d: Sample(problem=problems[d.text]) for d in draws if d.text in problems}
        prompts = {d: ids for d in draws if not isinstance(ids := encoded[d.text], str)}
        seeds = [draw.seed for draw in prompts]
        new = self._new_tokens(list(prompts.values()), seeds, options) if prompts else []
        for (draw, ids), tokens in zip(prompts.items(), new, strict=True):
            if isinstance(tokens, str):
                samples[draw] = Sample(problem=tokens)
            else:
                samples[draw] = self._sample(ids, tokens)
        return [samples[draw] for draw in draws]

    def _prompt(self, text: str, n_new: int, n_vocabulary: int) -> Tokens | str:
        """A prompt's token ids without BOS, or why it can't be continued."""
        ids, limit = self._encode(text, n_vocabulary), self._n_context
        if isinstance(ids, str) or limit is None or len(ids) + n_new <= limit:
            return ids
        return f"{len(ids)} tokens and {n_new} new ones, more than the model's context of {limit}"

    def _sample(self, prompt: Tokens, new: Tokens) -> Sample:
        ended = bool(new) and new[-1] in self._ends
        tokens = new[:-1] if ended else new
        finish: Finish = "stop" if ended else "length"
        return Sample(self._text_after(prompt, tokens), finish, len(tokens))

    def _text_after(self, prompt: Tokens, new: Tokens) -> str:
        """The text of new tokens; decoded without the prompt, it could lose its first space."""
        return self._text_of((*prompt, *new))[len(self._text_of(prompt)) :]

    @cached_property
    def _generation_settings(self) -> Any:
        """The model's ``GenerationConfig``; ``None`` if it is missing or can't be read."""
        try:
            return loading.load(self.source, GenerationConfig.from_pretrained)
        except BadInput:
            return None

    @cached_property
    def _ends(self) -> frozenset[int]:
        """End token ids: the generation settings', else the configuration's or tokenizer's."""
        settings = self._generation_settings or GenerationConfig.from_model_config(self.config)
        for ids in (settings.eos_token_id, self.config.eos_token_id, self.tokenizer.eos_token_id):
            if ids is not None:
                return frozenset([ids] if isinstance(ids, int) else ids)
        return frozenset()
