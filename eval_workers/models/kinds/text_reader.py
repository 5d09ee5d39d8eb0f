"""Text to token ids and back: the tokenizer, the rule for the context token, and what is refused.

Every text is encoded as the start of a document: some tokenizers put a space before its first word,
others (GPT-2, GPT-NeoX) don't. The context token (BOS) is no part of the ids.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from functools import cached_property
from typing import ClassVar

import tokenizers
import torch
import transformers
from transformers import AutoTokenizer

from plumbline.eval_workers.models.kinds.model_kind import Files, Kind, read_files
from plumbline.eval_workers.models.local import loading
from plumbline.eval_workers.models.local.chat_template import (
    Frame,
    load_conversation,
    rendered,
    without_bos,
)
from plumbline.eval_workers.models.local.text_form import reads_as_written
from plumbline.eval_workers.models.local.weight_files import quantisation
from plumbline.eval_workers.models.model_options import ModelOptions, refuse_options
from plumbline.eval_workers.models.sampling_contract import Instruction
from plumbline.eval_workers.models.scoring_contract import LOG_LIKELIHOOD, Identity, Tokens
from plumbline.warehouse.errors import BadInput, UsageProblem

#: Options of only some backends or kinds of models.
_NOT_EVERYWHERE = ("adapter", "quantisation", "tensor_parallel", "chat", "pll")


class TextReader:
    """A model's files, tokenizer and identity; the weights aren't loaded.

    Raises ``BadInput`` for a model that is not a language model of the kind or can't be loaded,
    ``UsageProblem`` for contradictory options or a model without a start token.
    """

    kind: ClassVar[Kind] = "causal"
    #: Options in ``_NOT_EVERYWHERE`` that the model takes.
    supports: ClassVar[frozenset[str]] = frozenset()
    #: True if the vocabulary covers every word: a text whose decoded words differ is then refused.
    knows_all_words = True

    def __init__(self, model: str, options: ModelOptions, files: Files | None = None) -> None:
        """``files``: the result of ``read_files``, which is called if they are ``None``."""
        self.options = options
        problem = f"{options.backend} has no such option for {self.kind} models: docs/models.md"
        refuse_options(
            options, [name for name in _NOT_EVERYWHERE if name not in self.supports], problem
        )
        self.files = files or read_files(model, options)
        self.source, self.config = self.files.source, self.files.config
        if self.files.kind != self.kind:
            problem = f"{self.config.model_type} is not a {self.kind} language model but"
            problem += f" of the kind {self.files.kind}"
            fix = "what this kind can do, with --backend transformers, is in docs/models.md"
            raise BadInput(f"model {self.source.name}", problem, fix)
        self.tokenizer = loading.load(self.source, AutoTokenizer.from_pretrained)
        ids, tokens = self.tokenizer.all_special_ids, self.tokenizer.all_special_tokens
        self._special = dict(zip(ids, tokens, strict=True))
        self._frames: dict[str, Frame] = {}
        policy, self._bos = self._context()
        conversation = None
        if options.chat is not None:
            messages = load_conversation(options.chat).messages()
            fix = "leave out --chat, or its `system`" if len(messages) > 1 else "leave out --chat"
            conversation = rendered(self.tokenizer, messages, self.source.name, fix)
            self._frame(conversation, [message["content"] for message in messages])
        adapter = self.files.adapter
        packages = [f"{name} {version}" for name, version in self.versions().items()]
        self.identity = Identity(
            model=self.source.name,
            revision=str(self.source.revision),
            backend=options.backend,
            backend_version=", ".join(packages),
            dtype=options.dtype,
            bos_policy=policy,
            bos_token_id=self._bos,
            quantisation=quantisation(self.source.name, self.config, options),
            adapter=adapter.name if adapter else None,
            text_form=options.text_form,
            step=self.source.step,
            measure=self.measure,
            conversation=conversation,
        )

    def versions(self) -> dict[str, str]:
        """Versions of the packages that compute scores, by name; a part of the identity."""
        versions = {
            "transformers": transformers.__version__,
            "torch": torch.__version__,
            "tokenizers": tokenizers.__version__,
        }
        return versions | ({"peft": self.files.adapter.peft_version} if self.files.adapter else {})

    @property
    def measure(self) -> str:
        """The name of the score, see ``Identity.measure``."""
        return LOG_LIKELIHOOD if self.options.chat is None else f"{LOG_LIKELIHOOD} in a chat"

    def _context(self) -> tuple[str, int]:
        """The policy that chose the context token, and the token's id."""
        return loading.choose_bos(self.source.name, self.tokenizer, self.config, self.options)

    @property
    def n_context(self) -> int | None:
        """Longest text in tokens, without BOS; ``None`` without a known limit."""
        limit = getattr(self.config, "max_position_embeddings", None)
        return None if limit is None else int(limit)

    @cached_property
    def around(self) -> tuple[Tokens, Tokens]:
        """Special tokens that the tokenizer puts before and after an input."""
        return loading.special_around(self.tokenizer, "text")

    def lead(self, instruction: Instruction) -> str:
        """Return the text to put before a prompt for an instruction; empty without an instruction.

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
        ids = without_bos(self.ids([text])[0], self._bos)
        unknown = self.tokenizer.unk_token_id
        for message in messages:
            special = self._special_of(self.ids([message])[0])
            if not special and unknown in ids and self.tokenizer.unk_token not in text:
                special = [unknown]  # the vocabulary may lack the template's own characters
            if special:
                problem = f"the tokenizer gives the special token {self._special[special[0]]}"
                what = f"instruction {message!r}"
                raise UsageProblem(what, f"{problem} for part of it", "rewrite it")
        self._frames[text] = Frame(text, tuple(ids), tuple(self._special_of(ids)))

    def pieces(self, token_ids: Collection[int]) -> dict[int, str]:
        """Return the text of each token, with its leading space.

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

    def encoded(self, texts: Sequence[str]) -> list[Tokens | str]:
        """Return each text's token ids in ``score``, or its problem; loads no weights.

        If the weights have fewer tokens than the configuration, ``score`` refuses more texts.
        """
        n_vocabulary = int(self.config.get_text_config().vocab_size)
        return self.encoded_below(n_vocabulary, self.answers(texts))

    def answers(self, texts: Sequence[str]) -> list[str]:
        """Return texts with the conversation before each, if any; an empty text stays empty."""
        before = self.identity.conversation or ""
        return [f"{before}{text}" if text else "" for text in texts]

    def encoded_below(
        self,
        n_vocabulary: int,
        texts: Sequence[str],
        ids_of: Callable[[list[str]], list[list[int]]] | None = None,
    ) -> list[Tokens | str]:
        """Return each text's token ids, without BOS and below ``n_vocabulary``; or its problem.

        ``ids_of`` encodes them, by default ``ids``.
        """
        ids_of = ids_of or self.ids
        found: list[list[int] | str]
        try:  # all at once is several times as fast
            found = [*ids_of([text or " " for text in texts])] if texts else []
        except Exception:  # a text can't be encoded: encode each on its own
            found = [self._alone(text, ids_of) for text in texts]
        return [
            ids if isinstance(ids, str) else self._usable(text, ids, n_vocabulary)
            for text, ids in zip(texts, found, strict=True)
        ]

    def _alone(self, text: str, ids_of: Callable[[list[str]], list[list[int]]]) -> list[int] | str:
        try:
            return ids_of([text or " "])[0]
        except Exception as e:  # tokenizers raise many kinds
            return f"the tokenizer can't encode it: {loading.first_line(e)}"

    def ids(self, texts: list[str]) -> list[list[int]]:
        """Token ids of texts, without special tokens around them."""
        return list(self.tokenizer(texts, add_special_tokens=False, verbose=False)["input_ids"])

    def text_of(self, ids: Sequence[int]) -> str:
        """The text of token ids, without special tokens."""
        options = {"skip_special_tokens": True, "clean_up_tokenization_spaces": False}
        return str(self.tokenizer.decode(list(ids), **options))

    def _special_of(self, ids: Sequence[int]) -> list[int]:
        return [i for i in ids if i in self._special]

    def _usable(self, text: str, ids: list[int], n_vocabulary: int) -> Tokens | str:
        """A text's ids without the BOS of its chat; or why the model can't score it."""
        if not text:
            return "the text is empty"
        allowed: tuple[int, ...] = ()
        answer = text
        if frames := [frame for start, frame in self._frames.items() if text.startswith(start)]:
            frame = max(frames, key=lambda frame: len(frame.text))
            allowed, answer = frame.special, text[len(frame.text) :]
            ids = without_bos(ids, self._bos)
        if not ids:
            return "the tokenizer gives no token for it"
        special = self._special_of(ids)
        if tuple(special) != allowed:
            more = special[len(allowed) :] or special
            return f"the tokenizer gives the special token {self._special[more[0]]} for part of it"
        if max(ids) >= n_vocabulary:
            return f"token {max(ids)} is outside the model's {n_vocabulary} tokens"
        if self.n_context is not None and len(ids) > self.n_context:
            return f"{len(ids)} tokens, more than the model's context of {self.n_context}"
        if not self.knows_all_words:
            return tuple(ids)
        read = self.text_of(ids)
        if not reads_as_written(answer, read, is_framed=bool(frames)):
            return f"the tokenizer reads other words: {read!r}"
        return tuple(ids)

    def n_computed(self, sequences: Collection[Tokens]) -> int:
        """Number of tokens that go through the model for distinct sequences, BOS included."""
        return sum(map(len, sequences))

    def n_vocabulary(self, n_embedded: int) -> int:
        """Return ``n_embedded``, the number of tokens that the weights have.

        Raises ``BadInput`` if BOS isn't among them.
        """
        if self._bos >= n_embedded:
            problem = f"BOS is token {self._bos}, the vocabulary ends before it"
            fix = "choose another with bos (option or setting)"
            raise BadInput(f"model {self.source.name}", problem, fix)
        return n_embedded
