"""Log-probabilities of words after prompts, with gradients: the input of the losses."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from plumbline.eval_workers.models.local.tree import hidden_of_trees, n_nodes, tree
from plumbline.eval_workers.models.scoring_contract import Tokens
from plumbline.eval_workers.training.mitigation.targets import TuningTarget


@dataclass(frozen=True)
class WordReader:
    """A causal ``transformers`` model that reads texts after the token ``bos``.

    The texts of a pass are read as a tree, see ``models.local.tree``, unless one has more than
    ``longest_in_tree`` tokens. A pass reads one prompt, or several whose trees have up to
    ``n_tokens`` nodes together.
    """

    model: Any
    bos: int
    longest_in_tree: int
    n_tokens: int

    def passes(self, targets: Sequence[TuningTarget]) -> Iterator[list[TuningTarget]]:
        """Targets in parts that fit one pass."""
        part: list[TuningTarget] = []
        n = 0
        for target in targets:
            size = n_nodes(sorted(set(target.sequences)))
            if part and n + size > self.n_tokens:
                yield part
                part, n = [], 0
            part.append(target)
            n += size
        if part:
            yield part

    def words(self, targets: Sequence[TuningTarget]) -> list[torch.Tensor]:
        """log P(word | prompt) in nats for each target's words, in float32 or better.

        P(word | prompt) is the sum over the word's forms; a form's probability is the product over
        the tokens that it adds.
        """
        sequences = sorted({sequence for target in targets for sequence in target.sequences})
        fits = max(map(len, sequences)) <= self.longest_in_tree
        logits, paths = (self._in_tree if fits else self._alone)(sequences)
        path_of = dict(zip(sequences, paths, strict=True))
        forms = [
            (path_of[target.prompt + added][len(target.prompt) :], added)
            for target in targets
            for word in target.words
            for added in word
        ]
        nodes = sorted({node for path, _ in forms for node in path})
        values = _logprobs(logits(nodes), {node: i for i, node in enumerate(nodes)}, forms)
        n_forms = [len(word) for target in targets for word in target.words]
        words = torch.stack([torch.logsumexp(of_word, dim=0) for of_word in values.split(n_forms)])
        return list(words.split([len(target.words) for target in targets]))

    def losses(self, targets: Sequence[TuningTarget], smoothing: float) -> torch.Tensor:
        """L_d, L_g and L_l of each target, one row per target."""
        rows = []
        for target, words in zip(targets, self.words(targets), strict=True):
            pairs = torch.tensor(target.pairs, device=words.device)
            female, male = (words[list(side)] for side in (target.female, target.male))
            of_pairs = distance(words[pairs[:, 0]], words[pairs[:, 1]], smoothing)
            rows.append(torch.stack([of_pairs, total(words), difference(female, male)]))
        return torch.stack(rows)

    def _in_tree(self, sequences: Sequence[Tokens]) -> tuple[_Logits, list[list[int]]]:
        shared = tree(sequences, self.bos)
        (hidden,) = hidden_of_trees(self.model, [shared])
        output = self.model.get_output_embeddings()
        return lambda nodes: output(hidden[nodes]), shared.paths

    def _alone(self, sequences: Sequence[Tokens]) -> tuple[_Logits, list[list[int]]]:
        """Read texts of the same length together, each distinct one once.

        Their last token is left out, since it predicts nothing.
        """
        inputs = sorted({(self.bos, *s[:-1]) for s in sequences}, key=lambda ids: (len(ids), ids))
        starts = itertools.accumulate(map(len, inputs), initial=0)
        start_of = dict(zip(inputs, starts, strict=False))
        parts = []
        for _, group in itertools.groupby(inputs, key=len):
            ids = torch.tensor(list(group), device=self.model.device)
            mask = torch.ones_like(ids)
            output = self.model(input_ids=ids, attention_mask=mask, use_cache=False)
            parts.append(output.logits.flatten(0, 1))
        whole = torch.cat(parts)
        firsts = [start_of[(self.bos, *s[:-1])] for s in sequences]
        paths = [list(range(i, i + len(s))) for i, s in zip(firsts, sequences, strict=True)]
        return lambda nodes: whole[nodes], paths


#: A function from nodes to their logits, one row per node.
_Logits = Callable[[list[int]], torch.Tensor]


def _logprobs(
    logits: torch.Tensor, row_of: dict[int, int], forms: Sequence[tuple[list[int], Tokens]]
) -> torch.Tensor:
    """Log-probability (nats) of each form: the sum over the nodes that predict its tokens."""
    logits = logits.to(torch.promote_types(logits.dtype, torch.float32))
    device = logits.device
    rows = torch.tensor([row_of[node] for path, _ in forms for node in path], device=device)
    tokens = torch.tensor([token for _, added in forms for token in added], device=device)
    places = [i for i, (path, _) in enumerate(forms) for _ in path]
    values = logits[rows, tokens] - torch.logsumexp(logits, dim=1)[rows]
    sums = torch.zeros(len(forms), dtype=values.dtype, device=device)
    return sums.index_add(0, torch.tensor(places, device=device), values)


def distance(female: torch.Tensor, male: torch.Tensor, smoothing: float = 0.0) -> torch.Tensor:
    """L_d from the log-probabilities of the two words of each pair; ``smoothing`` is its e.

    >>> p = torch.tensor([0.3, 0.1], dtype=torch.float64).log()
    >>> round(distance(p[:1], p[1:]).item(), 6)  # (0.3 ln 1.5 + 0.1 ln 0.5) / 2
    0.026162
    """
    if smoothing:
        extra = torch.tensor(math.log(smoothing), dtype=female.dtype, device=female.device)
        female, male = torch.logaddexp(female, extra), torch.logaddexp(male, extra)
    middle = torch.logaddexp(female, male) - math.log(2)
    terms = female.exp() * (female - middle) + male.exp() * (male - middle)
    return terms.sum(dim=-1) / 2


def total(words: torch.Tensor) -> torch.Tensor:
    """L_g, the sum of all words' probabilities, from the log-probability of each word.

    >>> round(total(torch.tensor([0.3, 0.1], dtype=torch.float64).log()).item(), 12)
    0.4
    """
    return words.exp().sum(dim=-1)


def difference(female: torch.Tensor, male: torch.Tensor) -> torch.Tensor:
    """L_l from the log-probabilities of all female and all male words, each once; from 0 to 1.

    Its gradient is 0 if both sides are equal.

    >>> p = torch.tensor([0.3, 0.1], dtype=torch.float64).log()
    >>> round(difference(p[:1], p[1:]).item(), 12)
    0.5
    """
    ratio = torch.logsumexp(female, dim=-1) - torch.logsumexp(male, dim=-1)
    return torch.tanh(ratio / 2).abs()
