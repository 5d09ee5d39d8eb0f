"""Define what every scoring backend takes and returns, and what identifies its scores.

A backend turns texts into log-probabilities in nats: log p(text | BOS) is the sum over the text's
tokens of log p(token | BOS, earlier tokens). The context is exactly one BOS (start token). BOS and
EOS (end token) aren't scored. The softmax is computed in float32, the sum in float64. A score
doesn't depend on other texts, their order or the batch size. A text that can't be scored exactly
gets a problem instead of a number. Some kinds of models return a different sum, which
``Identity.measure`` names.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Protocol

from plumbline.warehouse.errors import UsageProblem

#: The problem of a pair whose two sentences a model can't tell apart.
SAME_TOKENS = "the tokenizer gives both sentences the same tokens"


def short_hash(value: object) -> str:
    """Return a hash of a JSON-serializable value (16 hex digits)."""
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()[:16]


#: A text as the model sees it: its token ids, without BOS.
Tokens = tuple[int, ...]

#: The measure of causal models, and of old rows in which no measure is stored.
LOG_LIKELIHOOD = "log-likelihood"
#: The measure of an encoder-decoder.
GIVEN_EMPTY = "log-likelihood given an empty input"


@dataclass(frozen=True)
class Identity:
    """Columns of table ``model``. All fields except ``step`` can change the model's scores."""

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
    step: int | None = None

    @property
    def key(self) -> str:
        """Hash of all fields except ``step`` (16 hex digits).

        The default ``measure`` isn't hashed. Keys made by versions without this field stay valid.

        >>> one = Identity("m", "r1", "transformers", "5", "float32", "tokenizer.bos_token", 0)
        >>> two = Identity("m", "r2", "transformers", "5", "float32", "tokenizer.bos_token", 0)
        >>> len(one.key), one.key == two.key
        (16, False)
        """
        fields = asdict(self)
        del fields["step"]  # the revision determines the step
        if self.measure == LOG_LIKELIHOOD:
            del fields["measure"]
        return short_hash(fields)


@dataclass(frozen=True)
class TextScore:
    """One text's score: the sum of its tokens' log-probabilities (nats), or a ``problem``.

    ``token_ids`` are the scored tokens, without BOS, in the order of ``token_logprobs_nats``. Texts
    that the model can tell apart must have different ids, because a pair whose sentences have the
    same ids is rejected. ``logprob_nats`` is finite, or NaN if there is a problem.
    """

    logprob_nats: float = math.nan
    token_ids: Tokens = ()
    token_logprobs_nats: tuple[float, ...] = ()
    problem: str | None = None

    @property
    def n_tokens(self) -> int:
        return len(self.token_ids)


FORMS = ("prefix", "chat")


@dataclass(frozen=True)
class Instruction:
    """An instruction to put before a prompt. If ``text`` is ``None``, there is no instruction.

    In the form `prefix`, the model reads the instruction, a space and the prompt as one text. In
    the form `chat`, the instruction is a user's message in the model's chat template, and the
    assistant's turn begins with the prompt. Raises ``UsageProblem`` for a blank instruction or an
    unknown form.

    >>> Instruction().key, Instruction("Go on.").key == Instruction("Go on.", "chat").key
    ('none', False)
    >>> Instruction("")
    Traceback (most recent call last):
    ...
    plumbline.warehouse.errors.UsageProblem: instruction '': is empty (leave it out for none)
    """

    text: str | None = None
    form: str = "prefix"

    def __post_init__(self) -> None:
        if self.form not in FORMS:
            raise UsageProblem(f"form {self.form!r}", f"is not one of {', '.join(FORMS)}")
        if self.text is not None and not self.text.strip():
            raise UsageProblem(f"instruction {self.text!r}", "is empty", "leave it out for none")

    @property
    def key(self) -> str:
        """Hash of instruction and form (16 hex digits), or `none` without an instruction."""
        return "none" if self.text is None else short_hash([self.text, self.form])

    @property
    def prefix(self) -> str:
        """The text to put before a prompt in the form `prefix`; empty without an instruction.

        Raises ``UsageProblem`` for the form `chat`, which needs a model's template.

        >>> Instruction("Go on:").prefix + "It was", Instruction().prefix + "It was"
        ('Go on: It was', 'It was')
        """
        if self.text is None:
            return ""
        if self.form != "prefix":
            problem = "needs the chat template of a model that is loaded here"
            raise UsageProblem(f"form {self.form!r}", problem, "use the form prefix")
        return f"{self.text} "


#: No instruction.
NONE = Instruction()


class Model(Protocol):
    """A backend's model. Its ``identity`` is known before any weights are loaded."""

    def lead(self, instruction: Instruction) -> str:
        """Return the text to put before a prompt; empty if there is no instruction."""

    @property
    def identity(self) -> Identity:
        """Everything that can change this model's scores."""

    @property
    def n_parameters(self) -> int | None:
        """Number of parameters (loads the weights); ``None`` if unknown."""


class Backend(Model, Protocol):
    """A model that scores texts."""

    def score(self, texts: Sequence[str]) -> list[TextScore]:
        """Return a score for each text, in the order given (loads the weights)."""
