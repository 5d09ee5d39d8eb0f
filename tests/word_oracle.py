"""P(word | prompt) by brute force: the full softmax at each position, one text a pass."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import tokenizers
import torch
import transformers


class Oracle:
    """P(word | prompt): full softmax in float64 at each position, one text a pass."""

    def __init__(self, directory: Path, bos: str) -> None:
        self._tokenizer = tokenizers.Tokenizer.from_file(str(directory / "tokenizer.json"))
        self._bos = self._tokenizer.token_to_id(bos)
        model = transformers.AutoModelForCausalLM.from_pretrained(
            directory, dtype=torch.float32, attn_implementation="eager"
        )
        self._model = model.double().eval()

    def ids(self, text: str) -> list[int]:
        found: list[int] = self._tokenizer.encode(text, add_special_tokens=False).ids
        return found

    def spelled(self, text: str) -> bool:
        tokens = self._tokenizer.encode(text, add_special_tokens=False).tokens
        return not {"<unk>", "[UNK]"} & set(tokens)

    def after(self, ids: Sequence[int]) -> np.ndarray[Any, np.dtype[np.float64]]:
        """Probabilities of the whole vocabulary after BOS, and after each of these; rows."""
        with torch.no_grad():
            logits = self._model(torch.tensor([[self._bos, *ids]])).logits[0]
        assert logits.dtype == torch.float64
        found: np.ndarray[Any, np.dtype[np.float64]] = torch.softmax(logits, -1).numpy()
        return found

    def word(self, prompt: str, word: str) -> tuple[float, int]:
        """The probability, and the most tokens that a form of the word adds."""
        begin = self.ids(prompt)
        added = set()
        for form in (word, word.capitalize()):
            text = f"{prompt} {form}"
            if self.spelled(text):
                ids = self.ids(text)
                assert ids[: len(begin)] == begin
                added.add(tuple(ids[len(begin) :]))
        total = 0.0
        for rest in added:
            rows = self.after([*begin, *rest])[len(begin) : -1]
            total += math.prod(float(row[t]) for row, t in zip(rows, rest, strict=True))
        return total, max(map(len, added))
