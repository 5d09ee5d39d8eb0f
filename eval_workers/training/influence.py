"""Influence of parts of a training text on preferences of a model, by EK-FAC through kronfluence.

The influence of a part on a preference P is - g_P' H^-1 g, with g_P the gradient of P, g that of
the part's summed loss, and H the damped Gauss-Newton Hessian of a row, Kronecker-factored with
corrected eigenvalues (George et al. 2018, arXiv:1806.03884; Grosse et al. 2023, arXiv:2308.03296).
All are over the weights of the linear layers. Divided by the number of rows, the influence is to
first order the effect on P of having the part in the text.
"""

from __future__ import annotations

import logging
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from plumbline.eval_workers.models.scoring_contract import Tokens
    from plumbline.eval_workers.models.transformers_backend import TransformersBackend

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
#: Marks a position whose next token isn't part of the item.
NO_TARGET = -100
#: Most rows that the factors are fitted on, and items per batch.
N_FITTED, _BATCH = 512, 16
#: Items scored between two reports of progress; their scores are then on the disk.
_AT_ONCE = 1024
#: Most nodes of a tree; a preference's sentences are read in trees.
_TREE_NODES = 512
#: A preference: the tokens of each sentence, and the weight of their log-probability.
Weighted = Sequence[tuple["Tokens", float]]


@dataclass(frozen=True)
class Items:
    """Parts of a training text: token ids, [item, token], and the ids to predict after each."""

    tokens: Ints
    targets: Ints

    def __len__(self) -> int:
        return len(self.tokens)

    def __getitem__(self, k: int) -> dict[str, Ints]:
        return {"tokens": self.tokens[k], "targets": self.targets[k]}

    def only(self, indices: Ints) -> Items:
        """The items with these indices."""
        return Items(self.tokens[indices], self.targets[indices])


def influence(
    backend: TransformersBackend,
    fitted: Items,
    items: Items,
    preferences: Sequence[Weighted],
    directory: Path,
    name: str = "scores",
    strategy: str = "ekfac",
    seed: int = 0,
    progress: Callable[[int, int], None] = lambda *_: None,
) -> Floats:
    """- g_P' H^-1 g of each preference P and item, float64[preference, item].

    Args:
        backend: must not be used again, since its model is changed.
        fitted: rows that H is fitted on, with labels drawn from the model by ``seed``.
        directory: holds the factors of this model and these rows, and the scores under ``name``;
            the same call resumes where it was stopped.
        strategy: kronfluence's name for the form of H; ``identity`` for H = 1.
    """
    import torch
    from kronfluence.analyzer import Analyzer, prepare_model
    from kronfluence.arguments import FactorArguments, ScoreArguments

    trees = [(q, tree) for q, weighted in enumerate(preferences) for tree in _trees(weighted)]
    task = _task(backend.identity.bos_token_id, [tree for _, tree in trees])
    model = prepare_model(backend.loaded.float(), task)
    is_cpu = model.device.type == "cpu"
    directory.parent.mkdir(parents=True, exist_ok=True)
    analyzer = Analyzer(
        directory.name,
        model,
        task,
        cpu=is_cpu,
        log_level=logging.ERROR,
        disable_tqdm=True,
        output_dir=str(directory.parent),
    )
    parts = range(0, len(items), _AT_ONCE)
    n_steps = len(parts) + 1
    torch.manual_seed(seed)
    shared = {"factors_name": strategy, "overwrite_output_dir": False}
    arguments = ScoreArguments(damping_factor=None, query_gradient_accumulation_steps=len(trees))
    influences = np.zeros((len(preferences), len(items)))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)  # torch warns about kronfluence
        analyzer.fit_all_factors(
            dataset=fitted,
            per_device_batch_size=_BATCH,
            factor_args=FactorArguments(strategy=strategy),
            **shared,
        )
        progress(1, n_steps)
        for done, start in enumerate(parts, 2):
            indices = np.arange(start, min(start + _AT_ONCE, len(items)))
            analyzer.compute_pairwise_scores(
                scores_name=f"{name}-{start}",
                query_dataset=_Numbers(range(len(trees))),
                train_dataset=items.only(indices),
                per_device_query_batch_size=1,
                per_device_train_batch_size=_BATCH,
                score_args=arguments,
                **shared,
            )
            scores = analyzer.load_pairwise_scores(f"{name}-{start}")["all_modules"]
            for (q, _), of_tree in zip(trees, scores.double().numpy(), strict=True):
                influences[q, indices] -= of_tree
            progress(done, n_steps)
    return influences


class _Numbers(list[int]):
    """A data set of the trees' numbers."""


def _trees(weighted: Weighted) -> list[list[tuple[Tokens, float]]]:
    """The sorted sentences of a preference, in groups that fit into one tree each."""
    from plumbline.eval_workers.models.local.tree import end_of_tree

    left = sorted(weighted)
    trees = []
    while left:
        end = end_of_tree([tokens for tokens, _ in left], 0, _TREE_NODES)
        trees.append(left[:end])
        left = left[end:]
    return trees


def _task(bos: int, trees: Sequence[Weighted]) -> Any:
    """The training loss and the measurement for kronfluence; a query is a tree's number."""
    import torch
    from kronfluence.task import Task

    from plumbline.eval_workers.models.local.tree import hidden_of_trees, tree

    class LanguageModel(Task):
        def compute_train_loss(self, batch: Any, model: Any, sample: bool = False) -> torch.Tensor:
            logits = model(input_ids=batch["tokens"], use_cache=False).logits.flatten(0, 1).float()
            targets = batch["targets"].flatten()
            if sample:
                with torch.no_grad():
                    drawn = torch.multinomial(logits.softmax(dim=-1), 1).flatten()
                targets = torch.where(targets == NO_TARGET, targets, drawn)
            return torch.nn.functional.cross_entropy(
                logits, targets, ignore_index=NO_TARGET, reduction="sum"
            )

        def compute_measurement(self, batch: Any, model: Any) -> torch.Tensor:
            weighted = trees[batch.item()]
            sentences = tree([tokens for tokens, _ in weighted], bos)
            hidden = hidden_of_trees(model, [sentences])
            logits = model.get_output_embeddings()(hidden)[0].float()
            nodes = torch.tensor([node for path in sentences.paths for node in path])
            targets = torch.tensor([token for tokens, _ in weighted for token in tokens])
            weights = [weight for tokens, weight in weighted for _ in tokens]
            values = logits.log_softmax(dim=-1)[nodes.to(logits.device), targets.to(logits.device)]
            total: torch.Tensor = (values * values.new_tensor(weights)).sum()
            return total

    return LanguageModel()
