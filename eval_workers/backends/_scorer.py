"""What every backend does alike: texts to token ids, refusals, sums. See ``base`` for a score.

Texts are encoded as at the start of a text: a tokenizer that puts a space before the first word
does so here, one that does not (GPT-2, GPT-NeoX) sees the first word without it. A backend gets
token ids and returns log-probabilities of tokens; it never sees a text.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence

from transformers import AutoConfig, AutoTokenizer

from eval_workers.backends import _loading as loading
from eval_workers.backends._source import find_source
from eval_workers.backends.base import DEVICES, DTYPES, Identity, ModelOptions, TextScore, Tokens
from warehouse.errors import BadInput, UsageProblem


class Scorer(ABC):
    """A causal language model that scores texts; the base of all backends.

    The tokenizer and configuration are read at once, the weights when they are first needed.
    Raises ``BadInput`` for what is not a causal language model or can't be had, ``UsageProblem``
    for options that contradict themselves or a model without a BOS token, ``MissingComponent``
    for a GPU that is not there.
    """

    #: Whether GPUs can share a model.
    has_tensor_parallel = False

    def __init__(self, model: str, options: ModelOptions, versions: Mapping[str, str]) -> None:
        """``versions`` of the packages that compute: they define a score too."""
        _check(options, self.has_tensor_parallel)
        loading.silence()
        self.options = options
        self.source = loading.at_commit(find_source(model, options.revision))
        self.config = loading.load(self.source, AutoConfig.from_pretrained)
        loading.check_causal(self.source.name, self.config)
        self.tokenizer = loading.load(self.source, AutoTokenizer.from_pretrained)
        ids, tokens = self.tokenizer.all_special_ids, self.tokenizer.all_special_tokens
        self._special = dict(zip(ids, tokens, strict=True))
        policy, bos_token_id = loading.choose_bos(
            self.source.name, self.tokenizer, self.config, options
        )
        self.identity = Identity(
            model=self.source.name,
            revision=str(self.source.revision),
            backend=options.backend,
            backend_version=", ".join(f"{name} {version}" for name, version in versions.items()),
            dtype=options.dtype,
            bos_policy=policy,
            bos_token_id=bos_token_id,
            quantisation=loading.quantisation(self.config),
        )

    @property
    @abstractmethod
    def n_parameters(self) -> int:
        """Parameters, tied weights counted once (loads the weights)."""

    @property
    @abstractmethod
    def _n_embedded(self) -> int:
        """Token ids below this can be both read and predicted by the weights (loads them)."""

    @abstractmethod
    def _token_logprobs(self, sequences: Sequence[Tokens]) -> list[list[float]]:
        """log p(token | BOS, earlier tokens) in nats of every token of each sequence.

        Sequences are distinct, not empty and within the context; BOS is not among their tokens.
        """

    @property
    def _n_context(self) -> int | None:
        """Longest text in tokens, without BOS; ``None``: no limit is known."""
        limit = getattr(self.config, "max_position_embeddings", None)
        return None if limit is None else int(limit)

    def score(self, texts: Sequence[str]) -> list[TextScore]:
        """A score for each text, in the order given; equal token sequences are computed once."""
        encoded = {text: self._encode(text) for text in texts}
        sequences = sorted({e for e in encoded.values() if not isinstance(e, str)})
        logprobs = dict(zip(sequences, self._token_logprobs(sequences), strict=True))
        scores = {
            text: TextScore(math.nan, problem=e) if isinstance(e, str) else _sum(e, logprobs[e])
            for text, e in encoded.items()
        }
        return [scores[text] for text in texts]

    def _encode(self, text: str) -> Tokens | str:
        """Token ids without BOS or EOS, or why the text can't be scored."""
        if not text:
            return "the text is empty"
        try:
            ids = self.tokenizer(text, add_special_tokens=False, verbose=False)["input_ids"]
        except Exception as e:  # tokenizers raise what they like
            return f"the tokenizer can't encode it: {loading.first_line(e)}"
        if not ids:
            return "the tokenizer gives no token for it"
        if special := [self._special[i] for i in ids if i in self._special]:
            return f"the tokenizer gives the special token {special[0]} for part of it"
        if max(ids) >= self._n_vocabulary:
            return f"token {max(ids)} is outside the model's {self._n_vocabulary} tokens"
        if self._n_context is not None and len(ids) > self._n_context:
            return f"{len(ids)} tokens, more than the model's context of {self._n_context}"
        return tuple(ids)

    @property
    def _n_vocabulary(self) -> int:
        if self.identity.bos_token_id >= self._n_embedded:
            problem = f"BOS is token {self.identity.bos_token_id}, the vocabulary ends before it"
            raise BadInput(f"model {self.source.name}", problem, "choose another with --bos TOKEN")
        return self._n_embedded


def _sum(ids: Tokens, logprobs: list[float]) -> TextScore:
    """The score of a text from its tokens' log-probabilities, summed in float64."""
    total = math.fsum(logprobs) if all(map(math.isfinite, logprobs)) else sum(logprobs)
    if not math.isfinite(total):
        return TextScore(math.nan, ids, tuple(logprobs), f"its log-probability is {total}")
    return TextScore(total, ids, tuple(logprobs))


def _check(options: ModelOptions, has_tensor_parallel: bool) -> None:
    for what, value, known in (
        ("--dtype", options.dtype, DTYPES),
        ("--device", options.device, DEVICES),
    ):
        if value not in known:
            raise UsageProblem(f"{what} {value}", f"is not one of {', '.join(known)}")
    if options.batch_tokens < 1:
        raise UsageProblem(f"--batch-tokens {options.batch_tokens}", "has to be 1 or more")
    if options.tensor_parallel < 1:
        raise UsageProblem(f"--tensor-parallel {options.tensor_parallel}", "has to be 1 or more")
    if options.tensor_parallel > 1 and not has_tensor_parallel:
        what = f"--tensor-parallel {options.tensor_parallel}"
        problem = f"backend {options.backend} runs a model on one device"
        raise UsageProblem(what, problem, "leave it out, or add --backend vllm")
