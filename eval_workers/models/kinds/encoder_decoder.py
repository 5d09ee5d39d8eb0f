"""Encoder-decoders (T5, BART, ...): log p(text | an empty input), in nats, and continuations.

The decoder starts from its start token and the special tokens that the tokenizer puts before texts
(BART's `<s>`). Neither these tokens nor EOS are scored.

**Scores.** The encoder reads only the special tokens of an empty input; only the decoder sees the
text. Empty inputs were rare in training: T5 filled gaps in texts, BART repaired damaged texts. So
use scores to compare the two sentences of a pair, or models of one family, but not an
encoder-decoder with a causal model.

**Continuations.** The encoder reads the prompt, and the decoder writes a text of its own, separated
from the prompt by a space. Tokens are drawn by log p(token | prompt, start, earlier tokens). Only
the start and end tokens of the model's generation settings are used.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

from plumbline.eval_workers.models.kinds.forward_passes import logprobs_of

import torch  # isort: skip (forward_passes first configures MKL)

from transformers.modeling_outputs import BaseModelOutput

from plumbline.eval_workers.models.kinds.forward_passes import LocalContinuer
from plumbline.eval_workers.models.local import loading as loading
from plumbline.eval_workers.models.local.drawing import Read
from plumbline.eval_workers.models.scoring_contract import GIVEN_EMPTY, Tokens
from plumbline.warehouse.errors import UsageProblem


class EncoderDecoderBackend(LocalContinuer):
    """An encoder-decoder loaded with transformers; see ``TextReader`` for its errors.

    ``options.bos`` is the decoder's start token, even if the files name one.
    """

    kind = "encoder-decoder"
    supports = frozenset[str]()

    @property
    def measure(self) -> str:
        """The log-likelihood given the encoder's empty input."""
        return GIVEN_EMPTY

    def _context(self) -> tuple[str, int]:
        """Source and id of the start token: ``--bos``, generation settings or configuration."""
        name = f"model {self.source.name}"
        if self.options.bos is not None:
            return loading.choose_bos(self.source.name, self.tokenizer, self.config, self.options)
        for settings in (self._generation_settings, self.config):
            start = getattr(settings, "decoder_start_token_id", None)
            if isinstance(start, int):
                return "decoder_start_token_id", start
        problem = "neither its configuration nor its generation settings name a decoder start token"
        raise UsageProblem(name, problem, "choose one of its tokens with --bos TOKEN")

    @cached_property
    def _lead_tokens(self) -> Tokens:
        """Special tokens between the start token and a text."""
        return loading.special_around(self.tokenizer, "text_target")[0]

    @property
    def _n_context(self) -> int | None:
        for name in ("max_decoder_position_embeddings", "max_position_embeddings"):
            if limit := getattr(self.config, name, None):
                return int(limit) - len(self._lead_tokens)
        return None

    def _ids(self, texts: list[str]) -> list[list[int]]:
        """Token ids of texts as the decoder's output; those of an encoder's input may differ."""
        encoded = self.tokenizer(text_target=texts, add_special_tokens=False, verbose=False)
        return list(encoded["input_ids"])

    @cached_property
    def _start(self) -> Tokens:
        """The start token and the special tokens before a text."""
        return (self.identity.bos_token_id, *self._lead_tokens)

    @cached_property
    @torch.inference_mode()
    def _encoded(self) -> torch.Tensor:
        """The encoder's states for the empty input, one row."""
        ids = [*self._around[0], *self._around[1]]
        if not ids:  # an encoder needs at least one token
            eos = self.tokenizer.eos_token_id
            ids = [self.identity.bos_token_id if eos is None else eos]
        return _encoded(self._model, [tuple(ids)])

    def _token_logprobs(self, sequences: Sequence[Tokens]) -> list[list[float]]:
        logprobs = self._in_passes(sorted(sequences, key=len), self._pass)
        return [logprobs[sequence] for sequence in sequences]

    @torch.inference_mode()
    def _pass(self, sequences: list[Tokens]) -> list[list[float]]:
        """Log-probabilities (nats) of the tokens of sequences of one length."""
        targets = torch.tensor(sequences, device=self._model.device)
        lead = targets.new_tensor(self._start).expand(len(sequences), -1)
        inputs = torch.cat([lead, targets[:, :-1]], dim=1)
        output = _decoded(self._model, self._encoded.expand(len(sequences), -1, -1), inputs)
        logits = output.logits[:, len(self._lead_tokens) :]
        values = logprobs_of(logits.flatten(0, 1), targets.flatten()).view_as(targets)
        rows: list[list[float]] = values.tolist()
        return rows

    def _prompt(self, text: str, n_new: int, n_vocabulary: int) -> Tokens | str:
        """A prompt's token ids as the encoder's input, without special ones; or its problem."""
        ids = self._encode(text, n_vocabulary, ids_of=super()._ids)
        if isinstance(ids, str):
            return ids
        names = ("max_encoder_position_embeddings", "max_position_embeddings")
        limit = next((n for name in names if (n := getattr(self.config, name, None))), None)
        n_read = len(self._with_special(ids))
        if limit is not None and n_read > limit:
            return f"{n_read} tokens, more than the {limit} that the model's encoder reads"
        if self._n_context is not None and n_new > self._n_context:
            return f"{n_new} new tokens, more than the {self._n_context} that the decoder writes"
        return ids

    def _with_special(self, prompt: Tokens) -> Tokens:
        before, after = self._around
        return (*before, *prompt, *after)

    def _read(self, prompts: Sequence[Tokens]) -> Read:
        return _Written(self._model, prompts, self._start)

    def _text_after(self, prompt: Tokens, new: Tokens) -> str:
        """The text of new tokens, after a space unless it is empty or starts with white space."""
        text = self._text_of(new)
        return text if not text or text[0].isspace() else f" {text}"


class _Written(Read):
    """The decoder's sequences, one per input of the encoder; the inputs have equal lengths."""

    def __init__(self, model: Any, inputs: Sequence[Tokens], start: Tokens) -> None:
        self._encoded = _encoded(model, inputs)
        super().__init__(model, [start] * len(inputs))

    def select(self, rows: torch.Tensor) -> None:
        self._encoded = self._encoded[rows]
        super().select(rows)

    def _output(self, ids: torch.Tensor) -> Any:
        return _decoded(self._model, self._encoded, ids, cache=self._cache, use_cache=True)


def _encoded(model: Any, inputs: Sequence[Tokens]) -> torch.Tensor:
    """The encoder's states for inputs of one length."""
    ids = torch.tensor(inputs, device=model.device)
    hidden: torch.Tensor = model.get_encoder()(ids, torch.ones_like(ids)).last_hidden_state
    return hidden


def _decoded(
    model: Any, encoded: torch.Tensor, ids: torch.Tensor, cache: Any = None, use_cache: bool = False
) -> Any:
    """The decoder's output for ``ids``, which follow the tokens in ``cache``."""
    return model(
        encoder_outputs=BaseModelOutput(last_hidden_state=encoded),
        attention_mask=torch.ones(encoded.shape[:2], dtype=torch.long, device=encoded.device),
        decoder_input_ids=ids,
        past_key_values=cache,
        use_cache=use_cache,
    )
