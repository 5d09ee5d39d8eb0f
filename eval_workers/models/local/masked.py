"""Score texts with masked models (BERT, RoBERTa, ALBERT, ...) by their pseudo-log-likelihood.

A masked model gives p(token | the tokens on both sides), not p(text). The pseudo-log-likelihood
(PLL) of a text is the sum of log p(token), in nats, over its tokens. Each token is masked in turn,
together with the later tokens of the same word (`within-word-l2r`; Kauf & Ivanova, ACL 2023). So
the model predicts the tokens of a word from left to right, as a causal model does.

The tokenizer defines words (``word_ids``). Special tokens around the text are read but never
scored. For each scored token, the model reads a copy of the text in which the token and the later
tokens of its word are masked. All copies in a forward pass have the same length, so no copy is
padded.
"""

from __future__ import annotations

from collections.abc import Sequence
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
#: A text with masks, the position of the token to predict, and the token.
_Copy = tuple[Tokens, int, int]


class MaskedModel(TextReader):
    """A masked language model loaded with transformers.

    Raises ``BadInput`` for a tokenizer without a mask token or without ``word_ids``, and
    ``UsageProblem`` for options that masked models don't have.
    """

    kind = "masked"
    measure = "PLL within-word-l2r"

    def _context(self) -> tuple[str, int]:
        """Return the values of ``bos_policy`` and ``bos_token_id`` in the model's ``Identity``.

        ``bos_policy`` shows the special tokens around a text. ``bos_token_id`` is the first special
        token before a text. If there is none, it is the mask token.
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
        """Maximum number of tokens in a text, without special tokens; ``None`` if unknown."""
        limit = getattr(self.config, "max_position_embeddings", None)
        if limit is None or int(limit) < 1:
            return None
        is_counted = self.config.model_type in _COUNTED_FROM_PADDING
        n_unused = int(self.config.pad_token_id or 0) + 1 if is_counted else 0
        return int(limit) - sum(map(len, self._around)) - n_unused

    def score(self, texts: Sequence[str]) -> list[TextScore]:
        """Return the PLL of each text, in the order given."""
        encoded = self.known_ids(texts)
        copies = list(map(self._copies, texts, encoded))
        distinct = {copy for of_text in copies for copy in of_text}
        passes = of_equal_length(distinct, self.weights.batch_tokens, lambda copy: len(copy[0]))
        logprobs = self.weights.in_passes(passes, self._pass)
        return [
            TextScore(problem=ids)
            if isinstance(ids, str)
            else summed(ids, [logprobs[copy] for copy in of_text])
            for ids, of_text in zip(encoded, copies, strict=True)
        ]

    def _copies(self, text: str, ids: Tokens | str) -> list[_Copy]:
        """Return one masked copy of the text per token. A text with a problem has no copies.

        The k-th copy masks the k-th token and the later tokens of the same word.
        """
        if isinstance(ids, str):
            return []
        words = self.tokenizer(text, add_special_tokens=False).word_ids()
        mask, (before, after) = self.tokenizer.mask_token_id, self._around

        def masked(place: int) -> Tokens:
            end = place + 1
            while end < len(ids) and words[end] == words[place] is not None:
                end += 1
            return (*before, *ids[:place], *[mask] * (end - place), *ids[end:], *after)

        return [(masked(place), len(before) + place, ids[place]) for place in range(len(ids))]

    @torch.inference_mode()
    def _pass(self, copies: list[_Copy]) -> list[float]:
        """Read masked copies of equal length. Return log p (nats) of each copy's scored token."""
        model = self.weights.model
        inputs, places, tokens = (
            torch.tensor(part, device=model.device) for part in zip(*copies, strict=True)
        )
        logits = model(input_ids=inputs, attention_mask=torch.ones_like(inputs)).logits
        values: list[float] = logprobs_of(logits[range(len(copies)), places], tokens).tolist()
        return values
