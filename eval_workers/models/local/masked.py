"""Masked models (BERT, RoBERTa, ALBERT, DistilBERT, ...): pseudo-log-likelihood of a text.

A masked model gives p(token | the tokens on both sides), not p(text). The pseudo-log-likelihood
(PLL) of a text is the sum of log p(token), in nats, over its tokens. Each token is masked in turn:

``original``
    Only the token is masked (Salazar et al., ACL 2020, equation 1). The tokens of one word give
    each other away, which makes rare long words look likely.
``within-word-l2r``
    The later tokens of the same word are masked too (Kauf & Ivanova, ACL 2023). So a word is read
    from left to right, as a causal model reads it.
``crows-pairs``
    Only the tokens that two sentences share, found as longest matching blocks, are masked and
    scored, one by one (Nangia et al., EMNLP 2020, equation 1). To score a sentence, the other
    sentence is needed; see ``score_beside``.

The tokenizer defines words (``word_ids``). Special tokens around the text are read but never
scored. For each scored token, the model reads a copy of the text that has the masks for that token.
All copies in a forward pass have the same length, so there is no padding. If two texts have equal
copies, such as a pair's sentences with the pronoun masked, the copy is computed once.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from functools import cached_property

import torch

from plumbline.eval_workers.models.local.causal_model import summed
from plumbline.eval_workers.models.local.text_reader import TextReader
from plumbline.eval_workers.models.local.weights import logprobs_of
from plumbline.eval_workers.models.scoring_contract import SAME_TOKENS, TextScore, Tokens
from plumbline.warehouse.errors import BadInput, UsageProblem

#: Model types, such as RoBERTa, whose first position is the padding token's id + 1.
_COUNTED_FROM_PADDING = (
    *("roberta", "camembert", "xlm-roberta", "xlm-roberta-xl", "roberta-prelayernorm"),
    *("data2vec-text", "ibert", "xmod", "mpnet", "longformer", "luke", "esm"),
)
#: A text with masks, and the position of the token to predict.
_Copy = tuple[Tokens, int]


@dataclass(frozen=True)
class _Read:
    """A text's tokens, without special tokens, and for each token the number of its word."""

    ids: Tokens
    words: Sequence[int | None]


class MaskedModel(TextReader):
    """A masked language model loaded with transformers. ``options.pll`` chooses the PLL.

    Raises ``BadInput`` for a tokenizer without a mask token. Raises ``UsageProblem`` for options of
    other kinds of models, and if ``options.pll`` needs ``word_ids`` that the tokenizer lacks.
    """

    kind = "masked"
    supports = frozenset({"pll"})

    @property
    def measure(self) -> str:
        """The name of the pseudo-log-likelihood."""
        return f"PLL {self.options.pll}"

    def _context(self) -> tuple[str, int]:
        """Return a phrase that shows the special tokens around a text, and the id of the first.

        If no special token comes before the text, the id is the mask token's.
        """
        name, tokenizer = f"model {self.source.name}", self.tokenizer
        if self.options.bos is not None:
            problem = "is for models that read from left to right"
            raise UsageProblem(f"--bos {self.options.bos}", problem, "leave it out")
        if tokenizer.mask_token_id is None:
            problem = "is a masked model whose tokenizer names no mask token"
            raise BadInput(name, problem, "save it with its own tokenizer")
        if self.options.pll == "within-word-l2r" and not tokenizer.is_fast:
            problem = "has a tokenizer that does not say which tokens are a word"
            raise UsageProblem(name, problem, "use --pll original")
        before, after = self._around
        tokens = tokenizer.convert_ids_to_tokens([*before, *after])
        shown = " ".join([*tokens[: len(before)], "...", *tokens[len(before) :]])
        return f"around the text: {shown}", (*before, tokenizer.mask_token_id)[0]

    @cached_property
    def _around(self) -> tuple[Tokens, Tokens]:
        return self.special_around()

    @property
    def n_context(self) -> int | None:
        """Length of the longest text in tokens, without special ones; ``None`` if unknown."""
        limit = getattr(self.config, "max_position_embeddings", None)
        if limit is None or int(limit) < 1:
            return None
        is_counted = self.config.model_type in _COUNTED_FROM_PADDING
        n_unused = int(self.config.pad_token_id or 0) + 1 if is_counted else 0
        return int(limit) - sum(map(len, self._around)) - n_unused

    def score(self, texts: Sequence[str]) -> list[TextScore]:
        """Return the PLL of each text, in the order given.

        Raises ``UsageProblem`` for the option `crows-pairs`, which can only score pairs.
        """
        if self.options.pll == "crows-pairs":
            fix = "use --pll within-word-l2r"
            raise UsageProblem("--pll crows-pairs", "is a score of a pair, not of a text", fix)
        reads = self._reads(texts)
        return self._scores([(reads[text], None) for text in texts])

    def score_beside(self, pairs: Sequence[tuple[str, str]]) -> list[TextScore]:
        """Return the PLL of each pair's first text, over the tokens that both texts share.

        Only the scored token is masked, unless ``options.pll`` is `within-word-l2r`. A pair whose
        texts share no token, or have all tokens in common, gets a problem.
        """
        reads = self._reads([text for pair in pairs for text in pair])
        return self._scores([(reads[text], reads[other]) for text, other in pairs])

    def _reads(self, texts: Sequence[str]) -> dict[str, _Read | str]:
        """Return each text's tokens and words, or why it can't be scored."""
        distinct = list(dict.fromkeys(texts))
        return {
            text: ids if isinstance(ids, str) else _Read(ids, self._words(text, ids))
            for text, ids in zip(distinct, self.known_ids(distinct), strict=True)
        }

    def _words(self, text: str, ids: Tokens) -> Sequence[int | None]:
        if self.options.pll != "within-word-l2r":
            return range(len(ids))
        words: list[int | None] = self.tokenizer(text, add_special_tokens=False).word_ids()
        return words

    def _scores(self, pairs: Sequence[tuple[_Read | str, _Read | str | None]]) -> list[TextScore]:
        """Score the first text of each pair; with a second text, only on the tokens they share."""
        copies = [self._copies(text, other) for text, other in pairs]
        tokens: dict[_Copy, list[int]] = {}
        for copy, token in (
            pair for found in copies if not isinstance(found, str) for pair in found
        ):
            tokens.setdefault(copy, []).append(token)
        logprobs = self._predicted(tokens)
        return [
            TextScore(math.nan, problem=of_text)
            if isinstance(of_text, str)
            else summed(tuple(t for _, t in of_text), [logprobs[copy][t] for copy, t in of_text])
            for of_text in copies
        ]

    def _copies(
        self, text: _Read | str, other: _Read | str | None
    ) -> list[tuple[_Copy, int]] | str:
        """Return the masked copy of the text and the token, for each scored token; or a problem."""
        if isinstance(text, str):
            return text
        if isinstance(other, str):
            return f"the sentence beside it: {other}"
        places: Sequence[int] = range(len(text.ids))
        if other is not None:
            if text.ids == other.ids:
                return SAME_TOKENS
            places = _shared(text.ids, other.ids)
            if not places:
                return "it shares no token with the sentence beside it"
        return [(self._copy(text, place), text.ids[place]) for place in places]

    def _copy(self, text: _Read, place: int) -> _Copy:
        """Return a copy of the text that masks a token and the later tokens of its word."""
        mask, (before, after) = self.tokenizer.mask_token_id, self._around
        ids, word = list(text.ids), text.words[place]
        ids[place] = mask
        for later in range(place + 1, len(ids)):
            if word is None or text.words[later] != word:
                break
            ids[later] = mask
        return (*before, *ids, *after), len(before) + place

    def _predicted(self, tokens: Mapping[_Copy, Sequence[int]]) -> dict[_Copy, dict[int, float]]:
        """Return, for each copy, log p (nats) of each of its ``tokens`` at the copy's position."""

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

        ordered = sorted(tokens, key=lambda copy: (len(copy[0]), copy))
        return self.weights.in_passes(ordered, run, lambda copy: len(copy[0]))


def _shared(ids: Tokens, others: Tokens) -> list[int]:
    """Return the positions in ``ids`` of tokens that two texts share, by longest matching blocks.

    The blocks depend on the order of the texts. So the texts are sorted first; this way both are
    scored on the same tokens.

    >>> _shared((5, 6, 7, 8), (5, 9, 7, 8))
    [0, 2, 3]
    """
    first, second = sorted((ids, others))
    blocks = SequenceMatcher(None, first, second, autojunk=False).get_matching_blocks()
    starts = [(block.a if ids == first else block.b, block.size) for block in blocks]
    return [place for start, size in starts for place in range(start, start + size)]
