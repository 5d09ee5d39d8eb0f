"""Score texts with masked models (BERT, RoBERTa, ALBERT, ...) by their pseudo-log-likelihood.

A masked model gives p(token | the tokens on both sides), not p(text). The pseudo-log-likelihood
(PLL) of a text is the sum of log p(token), in nats, over its tokens. Each token is masked in turn,
together with the later tokens of the same word (`within-word-l2r`; Kauf & Ivanova, ACL 2023). So
the model predicts the tokens of a word from left to right, as a causal model does.

The tokenizer defines words (``word_ids``). Special tokens around the text are read but never
scored. For each scored token, the model reads a copy of the text in which the token and the later
tokens of its word are masked. All copies in a forward pass have the same length, so no copy is
padded. Two texts can have the same copy, such as a pair's sentences with the pronoun masked. The
model then reads the copy once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property

import torch

from plumbline.eval_workers.models.local.causal_model import summed
from plumbline.eval_workers.models.local.text_reader import TextReader
from plumbline.eval_workers.models.local.weights import logprobs_of, of_equal_length
from plumbline.eval_workers.models.model_options import refuse_options
from plumbline.eval_workers.models.scoring_contract import TextScore, Tokens
from plumbline.warehouse.errors import BadInput

#: Model types, such as RoBERTa, whose first position is the padding token's id + 1.
_COUNTED_FROM_PADDING = (
    *("roberta", "camembert", "xlm-roberta", "xlm-roberta-xl", "roberta-prelayernorm"),
    *("data2vec-text", "ibert", "xmod", "mpnet", "longformer", "luke", "esm"),
)
#: A text with masks, and the position of the token to predict.
_Copy = tuple[Tokens, int]


class MaskedModel(TextReader):
    """A masked language model loaded with transformers.

    Raises ``BadInput`` for a tokenizer without a mask token or without ``word_ids``, and
    ``UsageProblem`` for options that only other kinds of models have.
    """

    kind = "masked"
    measure = "PLL within-word-l2r"

    def _context(self) -> tuple[str, int]:
        """Return a phrase that shows the special tokens around a text, and a token id.

        The id belongs to the first special token before a text. If there is none, it belongs to
        the mask token.
        """
        name, tokenizer = f"model {self.source.name}", self.tokenizer
        refuse_options(self.options, ["bos"], "is for models that read from left to right")
        if tokenizer.mask_token_id is None:
            problem = "is a masked model whose tokenizer names no mask token"
            raise BadInput(name, problem, "save it with its own tokenizer")
        if not tokenizer.is_fast:
            problem = "has a tokenizer that does not say which tokens form a word"
            raise BadInput(name, problem, "save it with a fast tokenizer")
        before, after = self._around
        tokens = tokenizer.convert_ids_to_tokens([*before, *after])
        shown = " ".join([*tokens[: len(before)], "...", *tokens[len(before) :]])
        return f"around the text: {shown}", (*before, tokenizer.mask_token_id)[0]

    @cached_property
    def _around(self) -> tuple[Tokens, Tokens]:
        return self.special_around()

    @property
    def n_context(self) -> int | None:
        """Length of the longest text in tokens, without special tokens; ``None`` if unknown."""
        limit = getattr(self.config, "max_position_embeddings", None)
        if limit is None or int(limit) < 1:
            return None
        is_counted = self.config.model_type in _COUNTED_FROM_PADDING
        n_unused = int(self.config.pad_token_id or 0) + 1 if is_counted else 0
        return int(limit) - sum(map(len, self._around)) - n_unused

    def score(self, texts: Sequence[str]) -> list[TextScore]:
        """Return the PLL of each text, in the order given."""
        copies = list(map(self._copies, texts, self.known_ids(texts)))
        tokens: dict[_Copy, list[int]] = {}
        for found in copies:
            for copy, token in () if isinstance(found, str) else found:
                tokens.setdefault(copy, []).append(token)
        logprobs = self._predicted(tokens)
        return [
            TextScore(problem=of_text)
            if isinstance(of_text, str)
            else summed(tuple(t for _, t in of_text), [logprobs[copy][t] for copy, t in of_text])
            for of_text in copies
        ]

    def _copies(self, text: str, ids: Tokens | str) -> list[tuple[_Copy, int]] | str:
        """Return (masked copy, token) for each token of the text, or the text's problem."""
        if isinstance(ids, str):
            return ids
        words = self.tokenizer(text, add_special_tokens=False).word_ids()
        return [(self._copy(ids, words, place), ids[place]) for place in range(len(ids))]

    def _copy(self, ids: Tokens, words: Sequence[int | None], place: int) -> _Copy:
        """Copy the text, and mask the token at ``place`` and the later tokens of its word."""
        mask, (before, after) = self.tokenizer.mask_token_id, self._around
        masked, word = list(ids), words[place]
        masked[place] = mask
        for later in range(place + 1, len(ids)):
            if word is None or words[later] != word:
                break
            masked[later] = mask
        return (*before, *masked, *after), len(before) + place

    def _predicted(self, tokens: Mapping[_Copy, Sequence[int]]) -> dict[_Copy, dict[int, float]]:
        """Return the log-probabilities (nats) of each copy's ``tokens`` at its masked position."""

        @torch.inference_mode()
        def run(batch: list[_Copy]) -> list[dict[int, float]]:
            model = self.weights.model
            inputs = torch.tensor([ids for ids, _ in batch], device=model.device)
            logits = model(input_ids=inputs, attention_mask=torch.ones_like(inputs)).logits
            rows = [row for row, copy in enumerate(batch) for _ in tokens[copy]]
            places = [copy[1] for copy in batch for _ in tokens[copy]]
            targets = [token for copy in batch for token in tokens[copy]]
            on_device = torch.tensor(targets, device=model.device)
            values = iter(logprobs_of(logits[rows, places], on_device).tolist())
            return [{token: next(values) for token in tokens[copy]} for copy in batch]

        n_tokens = self.weights.batch_tokens
        copies = of_equal_length(tokens, n_tokens, lambda copy: len(copy[0]))
        return self.weights.in_passes(copies, run)
