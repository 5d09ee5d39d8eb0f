"""The contract of a scoring backend: what goes in, what comes out, and who computed it.

A backend turns texts into log-probabilities, log p(text | BOS) = sum over the text's tokens of
log p(token | BOS, earlier tokens), natural log. Exactly one BOS is given as context; it is never
scored and no EOS is. Softmax in float32, sum in float64. A text's score does not depend on the
other texts, their order or the batch size. A text that can't be scored exactly comes back with a
problem and no number.

A model that has no log p(text | BOS) may give another figure of the same form, a sum over tokens in
nats, and names it: ``Identity.measure``. Figures of two measures are never compared by accident.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from plumbline.eval_workers.models.instruction import Instruction


def texts_hash(texts: Sequence[str]) -> str:
    """Hash of some texts in their order (16 hex digits)."""
    return hashlib.sha256(json.dumps(list(texts)).encode()).hexdigest()[:16]


#: A text as the model sees it: token ids, without BOS.
Tokens = tuple[int, ...]

#: The measure of a causal model; identities and tables from before there were others mean it.
LOG_LIKELIHOOD = "log-likelihood"
#: The measure of an encoder-decoder, which continues prompts too.
GIVEN_EMPTY = "log-likelihood given an empty input"


@dataclass(frozen=True)
class Identity:
    """Everything that can change a score; the columns of table ``model``."""

    model: str
    revision: str
    backend: str
    backend_version: str
    dtype: str
    bos_policy: str
    bos_token_id: int
    quantisation: str | None = None
    adapter: str | None = None
    text_form: str = "written"
    measure: str = LOG_LIKELIHOOD
    conversation: str | None = None
    step: int | None = None

    @property
    def key(self) -> str:
        """Hash of all fields, 16 hex digits: no two identities share it.

        What was added later counts only where it isn't the default, so that keys stay what they
        were.

        >>> one = Identity("m", "r1", "transformers", "5", "float32", "tokenizer.bos_token", 0)
        >>> two = Identity("m", "r2", "transformers", "5", "float32", "tokenizer.bos_token", 0)
        >>> len(one.key), one.key == two.key
        (16, False)
        """
        fields = asdict(self)
        del fields["step"]  # the revision says it already
        for name, default in (("measure", LOG_LIKELIHOOD), ("conversation", None)):
            if fields[name] == default:
                del fields[name]
        text = json.dumps(fields, sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:16]


@dataclass(frozen=True)
class TextScore:
    """One text's score: the sum of its tokens' log-probabilities (nats), or a ``problem``.

    ``token_ids`` are the scored tokens, without BOS, ``token_logprobs_nats`` theirs in order.
    Without a problem ``logprob_nats`` is finite; with one it is NaN and not to be used.
    """

    logprob_nats: float
    token_ids: Tokens = ()
    token_logprobs_nats: tuple[float, ...] = ()
    problem: str | None = None

    @property
    def n_tokens(self) -> int:
        """Scored tokens; 0 for a text that was not encoded."""
        return len(self.token_ids)


class Model(Protocol):
    """A model of a backend. ``identity`` is known before any weights are loaded."""

    def lead(self, instruction: Instruction) -> str:
        """What goes before a prompt to give an instruction (reads the tokenizer); may be empty."""
        ...

    @property
    def identity(self) -> Identity:
        """What defines what this model computes."""
        ...

    @property
    def n_parameters(self) -> int | None:
        """Parameters of the model (loads the weights); ``None`` where nobody says."""
        ...


class TextScorer(Protocol):
    """What gives texts a score."""

    def score(self, texts: Sequence[str]) -> list[TextScore]:
        """A score for each text, in the order given (loads the weights)."""
        ...


class PairScorer(Protocol):
    """What gives a text a score only beside another: for options whose measure is of a pair."""

    def score_beside(self, pairs: Sequence[tuple[str, str]]) -> list[TextScore]:
        """A score for the first text of each pair, given the second, in the order given."""
        ...


class Backend(Model, TextScorer, Protocol):
    """A model ready to score."""

    def pieces(self, token_ids: Collection[int]) -> dict[int, str]:
        """The text each token stands for, with the space that it starts with."""
        ...
