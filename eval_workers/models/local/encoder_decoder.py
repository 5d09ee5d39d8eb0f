"""Score texts and continue prompts with encoder-decoders (T5, BART, ...).

The decoder starts from its start token and the special tokens that the tokenizer puts before texts
(BART's `<s>`). These tokens and EOS are not scored.

**Scores.** A text's score is log p(text | empty input). The encoder reads only the special tokens
of an empty input, and the decoder reads the text. The models saw few empty inputs in training. So
compare scores only between the two sentences of a pair, or between models of one family.

**Continuations.** The encoder reads the prompt. The decoder writes a new text. Plumbline puts
a space between the prompt and this text. The model's generation settings are ignored, except for
the start and end tokens.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import torch
from transformers.modeling_outputs import BaseModelOutput

from plumbline.eval_workers.models.local.causal_model import CausalModel
from plumbline.eval_workers.models.local.drawing import Read
from plumbline.eval_workers.models.local.weights import Weights
from plumbline.eval_workers.models.scoring_contract import GIVEN_EMPTY, Tokens
from plumbline.warehouse.errors import UsageProblem


class EncoderDecoderModel(CausalModel):
    """An encoder-decoder loaded with transformers. Raises the errors of ``TextReader``.

    ``options.bos``, if given, replaces the decoder start token that the model's files name.
    """

    kind = "encoder-decoder"
    supports = frozenset[str]()
    measure = GIVEN_EMPTY
    scored_as = "text_target"

    def _context(self) -> tuple[str, int]:
        """Return where the decoder's start token comes from, and the token's id.

        The first source that names a token decides: ``--bos``, generation settings, configuration.
        """
        if self.options.bos is not None:
            return super()._context()
        for settings in (self._generation_settings, self.config):
            start = getattr(settings, "decoder_start_token_id", None)
            if isinstance(start, int):
                return "decoder_start_token_id", start
        problem = "neither its configuration nor its generation settings name a decoder start token"
        fix = "choose one of its tokens with bos (option or setting)"
        raise UsageProblem(f"model {self.source.name}", problem, fix)

    @cached_property
    def weights(self) -> Weights:
        return _Weights(self, (self._bos, *self._lead_tokens))

    @cached_property
    def _lead_tokens(self) -> Tokens:
        """The special tokens that come between the decoder's start token and a text."""
        return self.special_around(self.scored_as)[0]

    @property
    def n_context(self) -> int | None:
        """Maximum number of tokens in a text that the decoder writes; ``None`` if unknown."""
        limit = self._limit("max_decoder_position_embeddings")
        return limit and limit - len(self._lead_tokens)

    def _limit(self, name: str) -> int | None:
        names = (name, "max_position_embeddings")
        return next((int(n) for name in names if (n := getattr(self.config, name, None))), None)

    def _prompts(self, texts: Sequence[str], n_new: int) -> list[Tokens | str]:
        """Return each prompt's ids without special tokens, or the problem with the prompt."""

        def checked(ids: Tokens) -> Tokens | str:
            limit = self._limit("max_encoder_position_embeddings")
            n_read = len(self.weights.with_special(ids))
            if limit is not None and n_read > limit:
                return f"{n_read} tokens, more than the {limit} that the model's encoder reads"
            if self.n_context is not None and n_new > self.n_context:
                return f"{n_new} new tokens, more than the {self.n_context} that the decoder writes"
            return ids

        encoded = self.known_ids(texts, read_as="text")
        return [ids if isinstance(ids, str) else checked(ids) for ids in encoded]

    def _text_after(self, prompt: Tokens, new: Tokens) -> str:
        """Return the text of the new tokens. Unless it is empty, it starts with white space."""
        text = self.text_of(new)
        return text if not text or text[0].isspace() else f" {text}"


class _Weights(Weights):
    """The weights of an encoder-decoder. The decoder reads the tokens ``start`` before a text."""

    def __init__(self, model: EncoderDecoderModel, start: Tokens) -> None:
        super().__init__(model.files, model.options, start[0])
        self._start, self._around = start, model.special_around()
        eos = model.tokenizer.eos_token_id
        #: Token to use as the empty input if the model has no special tokens around an input.
        self._filler = start[0] if eos is None else eos

    @cached_property
    @torch.inference_mode()
    def _empty_encoded(self) -> torch.Tensor:
        """The encoder's hidden states for the empty input, as a batch with one row."""
        return _encoded(self.model, [self.with_special(()) or (self._filler,)])

    def _logits(self, targets: torch.Tensor) -> torch.Tensor:
        lead = targets.new_tensor(self._start).expand(len(targets), -1)
        inputs = torch.cat([lead, targets[:, :-1]], dim=1)
        output = _decoded(self.model, self._empty_encoded.expand(len(targets), -1, -1), inputs)
        logits: torch.Tensor = output.logits[:, len(self._start) - 1 :]
        return logits

    def with_special(self, prompt: Tokens) -> Tokens:
        before, after = self._around
        return (*before, *prompt, *after)

    def read(self, prompts: Sequence[Tokens]) -> Read:
        return _Written(self.model, prompts, self._start)


class _Written(Read):
    """The token sequences that a decoder has written, one per input. Inputs have equal lengths."""

    def __init__(self, model: Any, inputs: Sequence[Tokens], start: Tokens) -> None:
        self._encoded = _encoded(model, inputs)
        super().__init__(model, [start] * len(inputs))

    def select(self, rows: torch.Tensor) -> None:
        self._encoded = self._encoded[rows]
        super().select(rows)

    def _output(self, ids: torch.Tensor) -> Any:
        return _decoded(self._model, self._encoded, ids, cache=self._cache, use_cache=True)


def _encoded(model: Any, inputs: Sequence[Tokens]) -> torch.Tensor:
    ids = torch.tensor(inputs, device=model.device)
    hidden: torch.Tensor = model.get_encoder()(ids, torch.ones_like(ids)).last_hidden_state
    return hidden


def _decoded(
    model: Any, encoded: torch.Tensor, ids: torch.Tensor, cache: Any = None, use_cache: bool = False
) -> Any:
    """Return the decoder's output for ``ids``, which follow the tokens in ``cache``."""
    return model(
        encoder_outputs=BaseModelOutput(last_hidden_state=encoded),
        attention_mask=torch.ones(encoded.shape[:2], dtype=torch.long, device=encoded.device),
        decoder_input_ids=ids,
        past_key_values=cache,
        use_cache=use_cache,
    )
