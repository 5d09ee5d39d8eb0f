"""Base classes of backends with a tokenizer: encode texts, refuse some, sum log-probabilities.

``scoring_contract`` defines a score. Every text is encoded as the start of a document: some
tokenizers put a space before its first word, others (GPT-2, GPT-NeoX) don't. A backend gets token
ids and returns log-probabilities of tokens; it never sees a text.
"""

from __future__ import annotations

import itertools
import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import ClassVar

from transformers import AutoTokenizer

from plumbline.eval_workers.models.instruction import Instruction
from plumbline.eval_workers.models.kinds.model_kind import Files, Kind, read_files
from plumbline.eval_workers.models.local import loading as loading
from plumbline.eval_workers.models.local.chat_template import (
    Frame,
    load_conversation,
    rendered,
    without_bos,
)
from plumbline.eval_workers.models.local.text_form import reworded
from plumbline.eval_workers.models.local.weights import quantisation
from plumbline.eval_workers.models.model_options import ModelOptions
from plumbline.eval_workers.models.scoring_contract import (
    LOG_LIKELIHOOD,
    Identity,
    TextScore,
    Tokens,
)
from plumbline.warehouse.errors import BadInput, UsageProblem

#: Options of only some backends or kinds of models, each with a phrase that names these.
_NOT_EVERYWHERE = {
    "adapter": "of causal models with --backend transformers",
    "quantisation": "of causal models with --backend transformers",
    "tensor_parallel": "of --backend vllm",
    "chat": "of causal models",
    "pll": "of masked models with --backend transformers",
}


class TextReader(ABC):
    """A language model of one kind and its encoding of texts; base of backends with a tokenizer.

    The tokenizer and configuration are read at once, the weights when first needed.
    Raises ``BadInput`` for a model that is not a language model of the kind or can't be loaded,
    ``UsageProblem`` for contradictory options or a model without a start token,
    ``MissingComponent`` for a missing GPU.
    """

    #: True if the vocabulary covers every word: a text whose decoded words differ is then refused.
    knows_all_words = True

    kind: ClassVar[Kind] = "causal"
    #: Options in ``_NOT_EVERYWHERE`` that the backend takes.
    supports: ClassVar[frozenset[str]] = frozenset()

    def __init__(
        self,
        model: str,
        options: ModelOptions,
        versions: Mapping[str, str],
        files: Files | None = None,
    ) -> None:
        """``versions`` of packages become part of the identity; ``files``: see ``read_files``."""
        self.options = options
        self._refuse_unsupported()
        self.files = files or read_files(model, options)
        self.source, self.config = self.files.source, self.files.config
        self.adapter = self.files.adapter
        self._check_kind(self.files.kind)
        self.tokenizer = loading.load(self.source, AutoTokenizer.from_pretrained)
        ids, tokens = self.tokenizer.all_special_ids, self.tokenizer.all_special_tokens
        self._special = dict(zip(ids, tokens, strict=True))
        self._frames: dict[str, Frame] = {}
        policy, bos_token_id = self._context()
        messages = [] if options.chat is None else load_conversation(options.chat).messages()
        conversation = self._conversation(messages) if messages else None
        self.identity = Identity(
            model=self.source.name,
            revision=str(self.source.revision),
            backend=options.backend,
            backend_version=self._versions(versions),
            dtype=options.dtype,
            bos_policy=policy,
            bos_token_id=bos_token_id,
            quantisation=quantisation(self.source.name, self.config, options),
            adapter=self.adapter.name if self.adapter else None,
            text_form=options.text_form,
            step=self.source.step,
            measure=self.measure,
            conversation=conversation,
        )
        if conversation is not None:
            self._frame(conversation, [message["content"] for message in messages])

    @property
    def measure(self) -> str:
        """The name of the score, see ``Identity.measure``."""
        return LOG_LIKELIHOOD if self.options.chat is None else f"{LOG_LIKELIHOOD} in a chat"

    def _conversation(self, messages: Sequence[Mapping[str, str]]) -> str:
        fix = "leave out --chat, or its `system`" if len(messages) > 1 else "leave out --chat"
        return rendered(self.tokenizer, messages, self.source.name, fix)

    def _context(self) -> tuple[str, int]:
        """The policy that chose the context token, and the token's id."""
        return loading.choose_bos(self.source.name, self.tokenizer, self.config, self.options)

    def _check_kind(self, kind: Kind) -> None:
        if kind == self.kind:
            return
        problem = f"{self.config.model_type} is not a {self.kind} language model but"
        problem += f" of the kind {kind}"
        fix = "what this kind can do, with --backend transformers, is in docs/models.md"
        raise BadInput(f"model {self.source.name}", problem, fix)

    def _refuse_unsupported(self) -> None:
        defaults = ModelOptions()
        for option, place in _NOT_EVERYWHERE.items():
            value = getattr(self.options, option)
            if value != getattr(defaults, option) and option not in self.supports:
                what = f"--{option.replace('_', '-')} {value}"
                problem = f"{self.options.backend} has no such option for {self.kind} models"
                raise UsageProblem(what, problem, f"leave it out: it is {place}")

    def _versions(self, versions: Mapping[str, str]) -> str:
        parts = [f"{name} {version}" for name, version in versions.items()]
        if self.adapter is not None:
            parts.append(f"peft {self.adapter.peft_version}")
        return ", ".join(parts)

    @property
    @abstractmethod
    def n_parameters(self) -> int:
        """Parameters, tied weights counted once (loads the weights)."""

    @property
    @abstractmethod
    def _n_embedded(self) -> int:
        """Number of token ids with an input and an output embedding (loads the weights)."""

    @property
    def _n_context(self) -> int | None:
        """Longest text in tokens, without BOS; ``None`` without a known limit."""
        limit = getattr(self.config, "max_position_embeddings", None)
        return None if limit is None else int(limit)

    def lead(self, instruction: Instruction) -> str:
        """The text to put before a prompt for an instruction; empty without an instruction.

        A chat's frame is remembered, see ``_frame``. Raises ``UsageProblem`` for a chat that the
        model's template can't make, and for an instruction with special tokens or with characters
        that the vocabulary lacks.
        """
        if instruction.text is None or instruction.form == "prefix":
            return instruction.prefix
        messages = [{"role": "user", "content": instruction.text}]
        text = rendered(self.tokenizer, messages, self.source.name, "use the form prefix")
        self._frame(text, [instruction.text])
        return text

    def _frame(self, text: str, messages: Sequence[str]) -> None:
        """Remember a chat's frame: texts that start with it may hold its special tokens.

        Raises ``UsageProblem`` if the ``messages`` in the frame contain special or unknown tokens.
        """
        if text in self._frames:
            return
        ids = without_bos(self._ids([text])[0], self.identity.bos_token_id)
        unknown = self.tokenizer.unk_token_id
        for message in messages:
            special = self._special_of(self._ids([message])[0])
            if not special and unknown in ids and self.tokenizer.unk_token not in text:
                special = [unknown]  # the vocabulary may lack the template's own characters
            if special:
                problem = f"the tokenizer gives the special token {self._special[special[0]]}"
                what = f"instruction {message!r}"
                raise UsageProblem(what, f"{problem} for part of it", "rewrite it")
        self._frames[text] = Frame(text, tuple(ids), tuple(self._special_of(ids)))

    def pieces(self, token_ids: Collection[int]) -> dict[int, str]:
        """The text of each token, with its leading space.

        A token that is only a part of a character gives U+FFFD. Decoding drops the space before a
        text's first word, so each token is decoded as the second of two copies.
        """
        pieces = {}
        for i in token_ids:
            once, twice = (
                self.tokenizer.decode([i] * n, clean_up_tokenization_spaces=False) for n in (1, 2)
            )
            pieces[i] = twice[len(once) :]
        return pieces

    def n_computed(self, sequences: Collection[Tokens]) -> int:
        """Tokens that go through the model for distinct sequences, each with a BOS before it."""
        return sum(map(len, sequences))

    def encoded(self, texts: Sequence[str]) -> list[Tokens | str]:
        """Each text's token ids in ``score``, or its problem; loads no weights.

        If the weights have fewer tokens than the configuration, ``score`` refuses more texts.
        """
        return self._each_encoded(texts, int(self.config.get_text_config().vocab_size))

    def _each_encoded(self, texts: Sequence[str], n_vocabulary: int) -> list[Tokens | str]:
        answers = [self._answer(text) for text in texts]
        try:  # all at once is several times as fast
            encoded = self._ids([answer or " " for answer in answers]) if answers else []
        except Exception:  # a text can't be encoded: encode each on its own
            return [self._encode(answer, n_vocabulary) for answer in answers]
        return [
            self._usable(answer, ids, n_vocabulary)
            for answer, ids in zip(answers, encoded, strict=True)
        ]

    def _answer(self, text: str) -> str:
        """The text with any conversation before it; an empty text stays empty."""
        return f"{self.identity.conversation or ''}{text}" if text else text

    def _encode(
        self,
        text: str,
        n_vocabulary: int,
        *,
        ids_of: Callable[[list[str]], list[list[int]]] | None = None,
    ) -> Tokens | str:
        """A text's token ids without BOS or EOS, or its problem.

        ``ids_of`` encodes it, by default ``_ids``.
        """
        try:
            (ids,) = (ids_of or self._ids)([text]) if text else [[]]
        except Exception as e:  # tokenizers raise many kinds
            return f"the tokenizer can't encode it: {loading.first_line(e)}"
        return self._usable(text, ids, n_vocabulary)

    def _ids(self, texts: list[str]) -> list[list[int]]:
        return list(self.tokenizer(texts, add_special_tokens=False, verbose=False)["input_ids"])

    def _text_of(self, ids: Sequence[int]) -> str:
        options = {"skip_special_tokens": True, "clean_up_tokenization_spaces": False}
        return str(self.tokenizer.decode(list(ids), **options))

    def _special_of(self, ids: Sequence[int]) -> list[int]:
        return [i for i in ids if i in self._special]

    def _usable(self, text: str, ids: list[int], n_vocabulary: int) -> Tokens | str:
        if not text:
            return "the text is empty"
        allowed: tuple[int, ...] = ()
        answer = text
        if frames := [frame for start, frame in self._frames.items() if text.startswith(start)]:
            frame = max(frames, key=lambda frame: len(frame.text))
            allowed, answer = frame.special, text[len(frame.text) :]
            ids = without_bos(ids, self.identity.bos_token_id)
        if not ids:
            return "the tokenizer gives no token for it"
        special = self._special_of(ids)
        if tuple(special) != allowed:
            more = special[len(allowed) :] or special
            return f"the tokenizer gives the special token {self._special[more[0]]} for part of it"
        if max(ids) >= n_vocabulary:
            return f"token {max(ids)} is outside the model's {n_vocabulary} tokens"
        if self._n_context is not None and len(ids) > self._n_context:
            return f"{len(ids)} tokens, more than the model's context of {self._n_context}"
        if not self.knows_all_words:
            return tuple(ids)
        problem = reworded(answer, self._text_of(ids), is_framed=bool(frames))
        return f"the tokenizer {problem}" if problem else tuple(ids)

    @property
    def _n_vocabulary(self) -> int:
        if self.identity.bos_token_id >= self._n_embedded:
            problem = f"BOS is token {self.identity.bos_token_id}, the vocabulary ends before it"
            raise BadInput(f"model {self.source.name}", problem, "choose another with --bos TOKEN")
        return self._n_embedded


class Scorer(TextReader):
    """A model that scores a text from left to right, after a start token."""

    @abstractmethod
    def _token_logprobs(self, sequences: Sequence[Tokens]) -> list[list[float]]:
        """log p(token | BOS, earlier tokens) in nats of every token of each sequence.

        Sequences are distinct, not empty, within the context and without BOS.
        """

    def score(self, texts: Sequence[str]) -> list[TextScore]:
        """A score for each text, in the order given; equal token sequences are computed once."""
        n_vocabulary = self._n_vocabulary
        distinct = list(dict.fromkeys(texts))
        encoded = dict(zip(distinct, self._each_encoded(distinct, n_vocabulary), strict=True))
        sequences = sorted({e for e in encoded.values() if not isinstance(e, str)})
        logprobs = dict(zip(sequences, self._token_logprobs(sequences), strict=True))
        scores = {
            text: TextScore(math.nan, problem=e)
            if isinstance(e, str)
            else self._of_answer(e, logprobs[e])
            for text, e in encoded.items()
        }
        return [scores[text] for text in texts]

    def _of_answer(self, ids: Tokens, logprobs: list[float]) -> TextScore:
        """The score of the tokens after the conversation, if there is one.

        A token with both the template's end and the start of the text's first word is scored.
        """
        if self.identity.conversation is None:
            return summed(ids, logprobs)
        frame = self._frames[self.identity.conversation].ids
        shared = itertools.takewhile(lambda both: both[0] == both[1], zip(frame, ids, strict=False))
        start = sum(1 for _ in shared)
        if start == len(ids):
            return TextScore(math.nan, problem="the tokenizer gives no token for it")
        return summed(ids[start:], logprobs[start:])


def summed(ids: Tokens, logprobs: list[float]) -> TextScore:
    """The score of a text: its tokens' log-probabilities, summed in float64."""
    total = math.fsum(logprobs) if all(map(math.isfinite, logprobs)) else sum(logprobs)
    if not math.isfinite(total):
        return TextScore(math.nan, ids, tuple(logprobs), f"its log-probability is {total}")
    return TextScore(total, ids, tuple(logprobs))
