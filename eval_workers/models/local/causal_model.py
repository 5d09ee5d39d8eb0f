"""A causal model: it scores texts from left to right and continues prompts.

``text_reader.TextReader`` turns a text into token ids. ``local.weights.Weights`` computes the
log-probabilities of ids and draws new ids. ``CausalModel`` turns these into scores, as defined in
``scoring_contract``, and samples, as defined in ``sampling_contract``.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cached_property
from typing import Any

from transformers import GenerationConfig

from plumbline.eval_workers.models.local.source import load_part
from plumbline.eval_workers.models.local.text_reader import TextReader
from plumbline.eval_workers.models.sampling_contract import (
    Finish,
    Sample,
    SamplingOptions,
    SeededPrompt,
)
from plumbline.eval_workers.models.scoring_contract import TextScore, Tokens
from plumbline.warehouse.errors import BadInput


class CausalModel(TextReader):
    """A causal language model, loaded with ``transformers``. Subclasses may load it differently.

    Raises the errors of ``TextReader``, and ``MissingComponent`` if a requested GPU is missing.
    """

    supports = frozenset({"adapter", "quantisation"})

    def score(self, texts: Sequence[str]) -> list[TextScore]:
        """Return a score for each text, in the order given. Compute repeated texts only once."""
        encoded = self.known_ids(texts)
        sequences = sorted({ids for ids in encoded if not isinstance(ids, str)})
        values = self.weights.logprobs(sequences) if sequences else []
        logprobs = dict(zip(sequences, values, strict=True))
        return [
            TextScore(problem=ids) if isinstance(ids, str) else summed(ids, logprobs[ids])
            for ids in encoded
        ]

    def continue_(self, prompts: Sequence[SeededPrompt], options: SamplingOptions) -> list[Sample]:
        """Return a sample for each prompt, in the order given."""
        texts = list(dict.fromkeys(prompt.text for prompt in prompts))
        encoded = dict(zip(texts, self._prompts(texts, options.max_new_tokens), strict=True))
        ids = {p: e for p in prompts if not isinstance(e := encoded[p.text], str)}
        seeds, new = [prompt.seed for prompt in ids], []
        if ids:
            new = self.weights.new_tokens([*ids.values()], seeds, options, self.ends)
        tokens = dict(zip(ids, new, strict=True))
        return [self._sample(encoded[p.text], tokens.get(p, ())) for p in prompts]

    def _prompts(self, texts: Sequence[str], n_new: int) -> list[Tokens | str]:
        """Return each prompt's token ids without BOS, or the reason why it can't be continued."""
        limit = self.n_context
        problem = f"tokens and {n_new} new ones, more than the model's context of {limit}"
        return [
            f"{len(ids)} {problem}"
            if limit is not None and not isinstance(ids, str) and len(ids) + n_new > limit
            else ids
            for ids in self.known_ids(texts)
        ]

    def _sample(self, prompt: Tokens | str, new: Tokens | str) -> Sample:
        """Return the sample. If ``prompt`` or ``new`` is a string, it becomes the ``problem``."""
        if isinstance(prompt, str):
            return Sample(problem=prompt)
        if isinstance(new, str):
            return Sample(problem=new)
        ended = bool(new) and new[-1] in self.ends
        tokens = new[:-1] if ended else new
        finish: Finish = "stop" if ended else "length"
        return Sample(self._text_after(prompt, tokens), finish, len(tokens))

    def _text_after(self, prompt: Tokens, new: Tokens) -> str:
        """Return the text of ``new``. Decoding ``new`` alone could lose its leading space."""
        return self.text_of((*prompt, *new))[len(self.text_of(prompt)) :]

    @cached_property
    def _generation_settings(self) -> Any:
        """The model's ``GenerationConfig``; ``None`` if it is missing or can't be read."""
        try:
            return load_part(self.source, GenerationConfig.from_pretrained)
        except BadInput:
            return None

    @cached_property
    def ends(self) -> frozenset[int]:
        """Ids of the end tokens, from generation settings, else configuration, else tokenizer."""
        settings = self._generation_settings or GenerationConfig.from_model_config(self.config)
        for ids in (settings.eos_token_id, self.config.eos_token_id, self.tokenizer.eos_token_id):
            if ids is not None:
                return frozenset([ids] if isinstance(ids, int) else ids)
        return frozenset()


def summed(ids: Tokens, logprobs: list[float]) -> TextScore:
    """Return a text's score: the float64 sum of its tokens' log-probabilities (nats)."""
    total = math.fsum(logprobs) if all(map(math.isfinite, logprobs)) else sum(logprobs)
    if not math.isfinite(total):
        return TextScore(math.nan, ids, tuple(logprobs), f"its log-probability is {total}")
    return TextScore(total, ids, tuple(logprobs))
