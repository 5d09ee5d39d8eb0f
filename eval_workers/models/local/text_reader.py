"""Turn text into token ids and back, choose the BOS, and refuse texts that can't be scored.

Every text is encoded as the start of a document. Some tokenizers put a space before the first word
of a document. Others (GPT-2, GPT-NeoX) don't. The token ids of a text don't include the BOS.

A chat's frame is the text that a model's template puts before the assistant's words. The frame and
a text are encoded together, because some frames end with a space that belongs to the text's first
word. Only the frame may contain special tokens. The template's BOS is dropped, because every
backend adds a BOS itself.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from functools import cached_property
from importlib import metadata
from typing import Any, ClassVar

import tokenizers
import torch
import transformers
from transformers import AutoTokenizer

from plumbline.eval_workers.models.local.model_files import Files, Kind, quantisation, read_files
from plumbline.eval_workers.models.local.source import first_line, load_part
from plumbline.eval_workers.models.local.weights import Weights
from plumbline.eval_workers.models.model_options import ModelOptions, refuse_options
from plumbline.eval_workers.models.scoring_contract import (
    LOG_LIKELIHOOD,
    Identity,
    Instruction,
    Tokens,
)
from plumbline.warehouse.errors import BadInput, UsageProblem

#: Options that only some backends or kinds of models have.
_NOT_EVERYWHERE = ("adapter", "quantisation", "tensor_parallel")
#: The conventional BOS of a model type, for tokenizers that don't name a BOS.
_BOS_CONVENTIONS = {"gpt_neox": "<|endoftext|>"}
#: Placeholder for the assistant's words. It has only letters, so no template changes it.
_WORDS = "Plumblinewords"
#: Macro that replaces the templates' function for today's date, so scores don't change daily. It
#: writes the default date of Llama 3's templates, in digits if the format has `%m`.
_TODAY = (
    "{%- macro strftime_now(format) -%}"
    "{{ '2024-07-26' if '%m' in format else '26 Jul 2024' }}"
    "{%- endmacro -%}"
)


class TextReader:
    """A model's files, tokenizer and identity, and its weights. Weights are loaded when needed.

    Raises ``BadInput`` for a model that can't be loaded or isn't of the class's ``kind``. Raises
    ``UsageProblem`` for unsupported options or a model without a start token.
    """

    kind: ClassVar[Kind] = "causal"
    #: The value of ``Identity.measure``.
    measure: ClassVar[str] = LOG_LIKELIHOOD
    #: The tokenizer's argument for texts to score: `text`, or `text_target` for a decoder's output.
    scored_as: ClassVar[str] = "text"
    #: Options in ``_NOT_EVERYWHERE`` that this class supports.
    supports: ClassVar[frozenset[str]] = frozenset()
    #: True if the vocabulary covers every word. Then refuse texts that decoding would change.
    knows_all_words = True

    def __init__(self, model: str, options: ModelOptions, files: Files | None = None) -> None:
        """Read the tokenizer. If ``files`` is ``None``, call ``read_files`` first."""
        self.options = options
        problem = f"{options.backend} has no such option for {self.kind} models: docs/models.md"
        others = [name for name in _NOT_EVERYWHERE if name not in self.supports]
        refuse_options(options, others, problem)
        self.files = files or read_files(model, options)
        self.source, self.config = self.files.source, self.files.config
        if self.files.kind != self.kind:
            problem = f"{self.config.model_type} is not a {self.kind} language model but"
            problem += f" of the kind {self.files.kind}"
            fix = "see docs/models.md for what this kind can do with --backend transformers"
            raise BadInput(f"model {self.source.name}", problem, fix)
        self.tokenizer = load_part(self.source, AutoTokenizer.from_pretrained)
        ids, tokens = self.tokenizer.all_special_ids, self.tokenizer.all_special_tokens
        self._special = dict(zip(ids, tokens, strict=True))
        #: Text of a chat's frame -> special tokens in the frame, without BOS.
        self._frames: dict[str, Tokens] = {}
        policy, self._bos = self._context()
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
            step=self.source.step,
            measure=self.measure,
        )

    def versions(self) -> dict[str, str]:
        """Return the versions of the packages that can change scores, as {package: version}."""
        versions = {
            "transformers": transformers.__version__,
            "torch": torch.__version__,
            "tokenizers": tokenizers.__version__,
        }
        return versions | ({"peft": metadata.version("peft")} if self.files.adapter else {})

    def _context(self) -> tuple[str, int]:
        """Return where the BOS comes from, and the id of the BOS.

        The first source that names a BOS decides: ``--bos``, the tokenizer, the configuration, or
        ``_BOS_CONVENTIONS``. The configuration's BOS is used only if it is a special token of the
        tokenizer, because a default of the model's type may be the id of an ordinary word. Raises
        ``UsageProblem`` if no BOS is found, or if ``--bos`` isn't a token.
        """
        what, tokenizer = f"model {self.source.name}", self.tokenizer
        bos, vocabulary = self.options.bos, tokenizer.get_vocab()
        if bos is not None:
            if bos not in vocabulary:
                raise UsageProblem(f"--bos {bos}", f"is not a single token of {what}")
            return f"option: {bos}", vocabulary[bos]
        if tokenizer.bos_token_id is not None:
            return "tokenizer.bos_token", int(tokenizer.bos_token_id)
        special = {i for i, token in tokenizer.added_tokens_decoder.items() if token.special}
        configured = getattr(self.config, "bos_token_id", None)
        if isinstance(configured, int) and configured in special | self._special.keys():
            return "config.bos_token_id", configured
        convention = _BOS_CONVENTIONS.get(self.config.model_type)
        if convention in vocabulary:
            return f"convention: {convention}", vocabulary[convention]
        problem = "neither its tokenizer nor its configuration names a BOS token to start from"
        raise UsageProblem(what, problem, "choose one of its tokens with bos (option or setting)")

    @cached_property
    def weights(self) -> Any:
        """The model's weights, which are loaded when first needed.

        A subclass may return another kind of object, which must have ``n_parameters``,
        ``n_embedded``, ``logprobs`` and, if the model continues texts, ``new_tokens``.
        """
        return Weights(self.files, self.options, self._bos)

    @property
    def n_parameters(self) -> int:
        """Number of parameters (loads the weights)."""
        return int(self.weights.n_parameters)

    @property
    def n_context(self) -> int | None:
        """Maximum number of tokens in a text, without BOS; ``None`` if unknown."""
        limit = getattr(self.config, "max_position_embeddings", None)
        return None if limit is None else int(limit)

    def special_around(self, read_as: str = "text") -> tuple[Tokens, Tokens]:
        """Return the special tokens that the tokenizer puts before a text, and those after it."""
        for text in ("a", "the", "1", "."):
            bare = self.tokenizer(**{read_as: text}, add_special_tokens=False)["input_ids"]
            whole = self.tokenizer(**{read_as: text})["input_ids"]
            for start in range(len(whole) - len(bare) + 1):
                end = start + len(bare)
                if bare and whole[start:end] == bare:
                    return tuple(whole[:start]), tuple(whole[end:])
        return (), ()

    def lead(self, instruction: Instruction) -> str:
        """Return the text to put before a prompt to give the model its instruction.

        Without an instruction, return an empty string. Raises ``UsageProblem`` if the chat template
        is missing or can't be used. Also raises ``UsageProblem`` for an instruction with special
        tokens or with characters that aren't in the vocabulary.
        """
        if instruction.text is None or instruction.form == "prefix":
            return instruction.prefix
        frame = _rendered(self.tokenizer, instruction.text, self.source.name)
        if frame not in self._frames:
            ids = self._without_bos(self.ids([frame])[0])
            special = self._special_of(self.ids([instruction.text])[0])
            if special:
                problem = f"the tokenizer gives the special token {self._special[special[0]]}"
                what = f"instruction {instruction.text!r}"
                raise UsageProblem(what, f"{problem} for part of it", "rewrite it")
            self._frames[frame] = self._special_of(ids)
        return frame

    def known_ids(self, texts: Sequence[str], read_as: str = "") -> list[Tokens | str]:
        """Return each text's token ids without BOS, or the reason why it can't be scored.

        A text can't be scored if the model has no weights for one of its tokens. Loads the weights.
        Raises ``BadInput`` if the model has no weights for BOS.
        """
        n_embedded = self.weights.n_embedded
        if self._bos >= n_embedded:
            problem = f"BOS is token {self._bos}, but the model has only {n_embedded} tokens"
            fix = "choose another with bos (option or setting)"
            raise BadInput(f"model {self.source.name}", problem, fix)
        return self.encoded(texts, read_as, n_embedded)

    def encoded(
        self, texts: Sequence[str], read_as: str = "", n_tokens: int | None = None
    ) -> list[Tokens | str]:
        """Return each text's token ids without BOS, or the reason why it can't be scored.

        ``read_as`` names the tokenizer's parameter for texts (default: ``scored_as``). Token ids
        must be below ``n_tokens`` (default: the vocabulary size in the configuration).
        """
        n_tokens = n_tokens or int(self.config.get_text_config().vocab_size)

        def alone(text: str) -> list[int] | str:
            try:
                return self.ids([text], read_as)[0]
            except Exception as e:  # tokenizers raise many types of exceptions
                return f"the tokenizer can't encode it: {first_line(e)}"

        asked = [text or " " for text in texts]
        try:  # encoding all texts at once is several times faster
            found: list[list[int] | str] = [*self.ids(asked, read_as)] if texts else []
        except Exception:  # at least one text can't be encoded, so encode each text alone
            found = list(map(alone, asked))
        return [
            ids if isinstance(ids, str) else self._usable(text, ids, n_tokens)
            for text, ids in zip(texts, found, strict=True)
        ]

    def ids(self, texts: list[str], read_as: str = "") -> list[list[int]]:
        """Return the token ids of each text, without the special tokens around a text.

        ``read_as`` names the tokenizer's parameter for texts (default: ``scored_as``).
        """
        given: dict[str, Any] = {read_as or self.scored_as: texts}
        return list(self.tokenizer(**given, add_special_tokens=False, verbose=False)["input_ids"])

    def text_of(self, ids: Sequence[int]) -> str:
        """Return the text of token ids, without special tokens."""
        options = {"skip_special_tokens": True, "clean_up_tokenization_spaces": False}
        return str(self.tokenizer.decode(list(ids), **options))

    def _without_bos(self, ids: list[int]) -> list[int]:
        return ids[1:] if ids[:1] == [self._bos] else ids

    def _special_of(self, ids: Sequence[int]) -> Tokens:
        return tuple(i for i in ids if i in self._special)

    def _usable(self, text: str, ids: list[int], n_tokens: int) -> Tokens | str:
        """Return a text's ids without BOS, or the reason why the text can't be scored."""
        if not text:
            return "the text is empty"
        frame = max((f for f in self._frames if text.startswith(f)), key=len, default="")
        if frame:
            ids = self._without_bos(ids)
        if not ids:
            return "the tokenizer gives no token for it"
        special, in_frame = self._special_of(ids), self._frames.get(frame, ())
        if special != in_frame:
            more = special[len(in_frame) :] or special
            return f"the tokenizer gives the special token {self._special[more[0]]} for part of it"
        if max(ids) >= n_tokens:
            return f"token {max(ids)} is outside the model's {n_tokens} tokens"
        if self.n_context is not None and len(ids) > self.n_context:
            return f"{len(ids)} tokens, more than the model's context of {self.n_context}"
        read = self.text_of(ids) if self.knows_all_words else text
        answer = text[len(frame) :]
        if read != answer:
            decoded, written = _letters(read), _letters(answer)
            if not decoded.endswith(written) or (not frame and decoded != written):
                return f"the tokenizer reads other words: {read!r}"
        return tuple(ids)


def _letters(text: str) -> str:
    """Return the text's letters and digits in lower case, without accents.

    Use this to compare a text with its decoded tokens: many tokenizers drop case and accents.

    >>> _letters("She's na\u00efve.") == _letters("she ' s naive"), _letters("Yes, she ran.")
    (True, 'yessheran')
    """
    plain = unicodedata.normalize("NFKD", text.casefold())
    return re.sub(r"[\W_]+", "", "".join(c for c in plain if not unicodedata.combining(c)))


def _rendered(tokenizer: Any, instruction: str, model: str) -> str:
    """Return a chat's frame: the text that the template writes before the assistant's words.

    Raises ``UsageProblem`` if the model has no chat template, or if the template refuses, changes
    or leaves out the instruction.
    """
    what, fix = f"model {model}", "use the form prefix"
    if not getattr(tokenizer, "chat_template", None):
        raise UsageProblem(what, "has no chat template to put an instruction in", fix)
    chat = [{"role": "user", "content": instruction}, {"role": "assistant", "content": _WORDS}]
    try:
        template = _TODAY + tokenizer.get_chat_template()
        text = str(tokenizer.apply_chat_template(chat, chat_template=template, tokenize=False))
    except Exception as e:  # templates raise many types of exceptions
        problem = f"its chat template refuses an instruction before a prompt: {first_line(e)}"
        raise UsageProblem(what, problem, fix) from e
    frame = text.rpartition(_WORDS)[0]
    if instruction.strip() not in frame:  # templates may strip white space from a message
        problem = "its chat template changes or leaves out the instruction or the prompt"
        raise UsageProblem(what, problem, fix)
    return frame
