"""Check a backend or a scoring function that your own package adds to Plumbline.

Call these checks in the package's tests::

    from plumbline.contracts import check_backend

    def test_it_scores() -> None:
        check_backend("unigram", "novel.txt", ["She ran.", "He ran."])

A check finds the backend or function by name, so your package must be installed. If something is
wrong, a check raises ``AssertionError`` with the reason, or the error that a command would show.
Checks return the scores or distances that they computed, so that you can test these too.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from plumbline.eval_workers.fairpair import phi
from plumbline.eval_workers.models import open_backend
from plumbline.eval_workers.models.model_options import ModelOptions
from plumbline.eval_workers.models.scoring_contract import TextScore

_TEXTS = ("Jane is good.", "Jane is a bad nurse!", "")


def check_backend(
    backend: str, model: str, texts: Sequence[str], tolerance_nats: float = 1e-4, **options: Any
) -> list[TextScore]:
    """Check that a backend's scores are sums over tokens and don't depend on other texts.

    Returns the scores.

    Args:
        texts: two or more different texts that the model can score.
        tolerance_nats: how much a text's score may change if other texts are in the same call.
        options: fields of ``ModelOptions``.
    """
    how = ModelOptions(backend=backend, **options)
    opened = open_backend(model, how)
    identity = opened.identity
    assert identity.backend == backend, f"the identity names the backend {identity.backend}"
    same = open_backend(model, how).identity == identity
    assert same, "opening a model twice gives two identities"
    assert opened.score([]) == [], "score([]) is empty"
    n_parameters = opened.n_parameters
    assert n_parameters is None or n_parameters > 0, "n_parameters is None or above 0"
    scores = opened.score(texts)
    for text, score in zip(texts, scores, strict=True):
        values = score.token_logprobs_nats
        assert score.problem is None, f"{text!r} has no score: {score.problem}"
        assert score.n_tokens == len(values) > 0, f"{text!r}: one log-probability per token"
        assert max(values) <= 0, f"{text!r}: a token has a probability above 1"
        total = math.fsum(values)
        assert math.isclose(score.logprob_nats, total), f"{text!r}: {score} is not a sum of tokens"
    n_different = len({score.token_ids for score in scores})
    assert n_different == len(set(texts)), "different texts need different token_ids"
    turned = opened.score([*reversed(texts), texts[-1]])
    assert turned[0] == turned[-1], f"{texts[-1]!r} has two scores in one call"
    others = [
        *zip(scores, reversed(turned[:-1]), strict=True),
        *((score, opened.score([text])[0]) for text, score in zip(texts, scores, strict=True)),
    ]
    for one, other in others:
        assert one.token_ids == other.token_ids, "a text's tokens depend on the others"
        difference = abs(one.logprob_nats - other.logprob_nats)
        assert difference <= tolerance_nats, f"a score depends on the others: {difference} nats"
    (empty,) = opened.score([""])
    assert empty.problem and math.isnan(empty.logprob_nats), (
        "an empty text has the score NaN and a problem"
    )
    return scores


def check_scoring_function(name: str, texts: Sequence[str] = _TEXTS) -> phi.Floats:
    """Check that a scoring function returns symmetric distances. Return the distances."""
    function: phi.Phi = phi.SCORING_FUNCTIONS.load(name)
    assert function.DESCRIPTION and "\n" not in function.DESCRIPTION, "DESCRIPTION is one line"
    assert function.LANGUAGES is None or all(function.LANGUAGES), "LANGUAGES is None or codes"
    items = function.items(texts)
    assert len(items) == len(texts), "items() gives one item per text"
    n = len(items) + 1
    distances = function.distances([*items, function.combine(items)])
    assert distances.shape == (n, n), "distances() gives items x items"
    assert np.isfinite(distances).all() and (distances >= 0).all(), "distances are 0 or more"
    assert (distances == distances.T).all(), "distances are symmetric"
    assert not distances.diagonal().any(), "an item's distance from itself is 0"
    return distances[:-1, :-1]
