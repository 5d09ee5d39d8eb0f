"""Scores with Hugging Face transformers, on CPU or GPU.

Texts of equal token length share a forward pass, so that no pass holds padding: nothing can leak
from it, whatever the architecture does about positions. The input is BOS and all tokens but the
last; its logits predict all tokens.

Texts are encoded as at the start of a text: a tokenizer that puts a space before the first word
does so here, one that does not (GPT-2, GPT-NeoX) sees the first word without it.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any

os.environ.setdefault("HF_HUB_DISABLE_TELEMETRY", "1")

import huggingface_hub
import tokenizers
import torch
import transformers
from transformers import AutoConfig, AutoModelForCausalLM, AutoTokenizer
from transformers.utils.hub import cached_file, extract_commit_hash

from eval_workers.backends._source import Source, find_source
from eval_workers.backends.base import DEVICES, DTYPES, Identity, ModelOptions, TextScore
from warehouse.errors import BadInput, MissingComponent, UsageProblem

#: BOS by convention, for tokenizers of these model types that name none.
_BOS_CONVENTIONS = {"gpt_neox": "<|endoftext|>"}
#: Rows of logits whose float32 log-softmax is computed at once.
_SOFTMAX_ROWS = 256


class TransformersBackend:
    """A causal language model that scores texts; see ``base`` for what a score is.

    The tokenizer and configuration are read at once, the weights when they are first needed.
    Raises ``BadInput`` for what is not a causal language model or can't be had, ``UsageProblem``
    for options that contradict themselves or a model without a BOS token, ``MissingComponent``
    for a GPU that is not there.
    """

    def __init__(self, model: str, options: ModelOptions) -> None:
        _check(options)
        huggingface_hub.utils.logging.set_verbosity_error()
        transformers.utils.logging.set_verbosity_error()
        transformers.utils.logging.disable_progress_bar()
        self._options = options
        self._source = _at_commit(find_source(model, options.revision))
        self._config = _load(self._source, AutoConfig.from_pretrained)
        _check_causal(self._source.name, self._config)
        self._tokenizer = _load(self._source, AutoTokenizer.from_pretrained)
        self._special = dict(
            zip(self._tokenizer.all_special_ids, self._tokenizer.all_special_tokens, strict=True)
        )
        policy, bos_token_id = _choose_bos(
            self._source.name, self._tokenizer, self._config, options
        )
        versions = {
            "transformers": transformers.__version__,
            "torch": torch.__version__,
            "tokenizers": tokenizers.__version__,
        }
        self.identity = Identity(
            model=self._source.name,
            revision=str(self._source.revision),
            backend="transformers",
            backend_version=", ".join(f"{name} {version}" for name, version in versions.items()),
            dtype=options.dtype,
            bos_policy=policy,
            bos_token_id=bos_token_id,
            quantisation=_quantisation(self._config),
        )

    @cached_property
    def _model(self) -> Any:
        model, info = _load(
            self._source,
            AutoModelForCausalLM.from_pretrained,
            dtype=getattr(torch, self._options.dtype),
            output_loading_info=True,
        )
        if missing := sorted(info["missing_keys"]):
            problem = f"{len(missing)} weights are missing, {missing[0]} among them"
            raise BadInput(f"model {self._source.name}", problem, "download or save it again")
        return model.eval().to(_device(self._options.device))

    @property
    def n_parameters(self) -> int:
        """Parameters, tied weights counted once."""
        return sum(p.numel() for p in self._model.parameters())

    @cached_property
    def _n_vocabulary(self) -> int:
        """Token ids below this can be both read and predicted."""
        rows = self._model.get_input_embeddings().weight.shape[0]
        output = self._model.get_output_embeddings()
        n_vocabulary = min(rows, output.weight.shape[0]) if output is not None else rows
        if self.identity.bos_token_id >= n_vocabulary:
            problem = f"BOS is token {self.identity.bos_token_id}, the vocabulary ends before it"
            raise BadInput(f"model {self._source.name}", problem, "choose another with --bos TOKEN")
        return int(n_vocabulary)

    def score(self, texts: Sequence[str]) -> list[TextScore]:
        """A score for each text, in the order given; texts that are equal are computed once."""
        encoded = {text: self._encode(text) for text in texts}
        problems = {t: TextScore(math.nan, 0, e) for t, e in encoded.items() if isinstance(e, str)}
        tokens = {t: e for t, e in encoded.items() if not isinstance(e, str)}
        scores: dict[str, TextScore] = dict(problems)
        for batch in _batches(tokens, self._options.batch_tokens):
            sums = self._logprobs([tokens[text] for text in batch])
            for text, logprob in zip(batch, sums, strict=True):
                problem = None if math.isfinite(logprob) else f"its log-probability is {logprob}"
                value = math.nan if problem else logprob
                scores[text] = TextScore(value, len(tokens[text]), problem)
        return [scores[text] for text in texts]

    def _encode(self, text: str) -> list[int] | str:
        """Token ids without BOS or EOS, or why the text can't be scored."""
        if not text:
            return "the text is empty"
        try:
            ids = self._tokenizer(text, add_special_tokens=False, verbose=False)["input_ids"]
        except Exception as e:  # tokenizers raise what they like
            return f"the tokenizer can't encode it: {_first_line(e)}"
        if not ids:
            return "the tokenizer gives no token for it"
        if special := [self._special[i] for i in ids if i in self._special]:
            return f"the tokenizer gives the special token {special[0]} for part of it"
        if max(ids) >= self._n_vocabulary:
            return f"token {max(ids)} is outside the model's {self._n_vocabulary} tokens"
        limit = getattr(self._config, "max_position_embeddings", None)
        if limit is not None and len(ids) > limit:
            return f"{len(ids)} tokens, more than the model's context of {limit}"
        return list(ids)

    @torch.inference_mode()
    def _logprobs(self, ids: list[list[int]]) -> list[float]:
        """log p of each token sequence given BOS, in nats; all of one length."""
        device = self._model.device
        targets = torch.tensor(ids, device=device)
        bos = torch.full_like(targets[:, :1], self.identity.bos_token_id)
        inputs = torch.cat([bos, targets[:, :-1]], dim=1)
        mask = torch.ones_like(inputs)
        output = self._model(input_ids=inputs, attention_mask=mask, use_cache=False)
        logits = output.logits.flatten(0, 1)
        wanted = targets.flatten()
        logprobs = torch.empty(wanted.shape, dtype=torch.float64, device=device)
        for start in range(0, len(wanted), _SOFTMAX_ROWS):
            rows = slice(start, start + _SOFTMAX_ROWS)
            part = logits[rows].float()
            chosen = part.gather(1, wanted[rows, None])[:, 0]
            logprobs[rows] = (chosen - torch.logsumexp(part, dim=1)).double()
        sums: list[float] = logprobs.view_as(targets).sum(dim=1).tolist()
        return sums


def _batches(tokens: dict[str, list[int]], budget: int) -> Iterator[list[str]]:
    """Texts of equal token length, at most ``budget`` tokens together (or a single text)."""
    by_length: dict[int, list[str]] = {}
    for text, ids in tokens.items():
        by_length.setdefault(len(ids), []).append(text)
    for length in sorted(by_length, reverse=True):  # the largest first: memory runs out at once
        texts = sorted(by_length[length])
        size = max(1, budget // length)
        for start in range(0, len(texts), size):
            yield texts[start : start + size]


def _check(options: ModelOptions) -> None:
    for what, value, known in (
        ("--dtype", options.dtype, DTYPES),
        ("--device", options.device, DEVICES),
    ):
        if value not in known:
            raise UsageProblem(f"{what} {value}", f"is not one of {', '.join(known)}")
    if options.batch_tokens < 1:
        raise UsageProblem(f"--batch-tokens {options.batch_tokens}", "has to be 1 or more")


def _device(wanted: str) -> str:
    if wanted == "cuda" and not torch.cuda.is_available():
        raise MissingComponent("--device cuda", "no CUDA device is visible", "use --device cpu")
    return "cuda" if wanted != "cpu" and torch.cuda.is_available() else "cpu"


def _at_commit(source: Source) -> Source:
    """The source with a hub revision made a commit: a branch can move, also during a run."""
    if source.is_local:
        return source
    path = _load(source, cached_file, filename="config.json")
    commit = extract_commit_hash(str(path), None)
    if commit is None:
        raise BadInput(f"model {source.name}", f"no commit is known of {path}")
    return replace(source, revision=commit)


def _load(source: Source, load: Callable[..., Any], **options: Any) -> Any:
    """Load a part of a model; whatever goes wrong is bad input, told in one line."""
    if not source.is_local:
        options["revision"] = source.revision or "main"
    options["local_files_only"] = source.is_local
    if load is not cached_file:
        options["trust_remote_code"] = False  # code that comes with a model is never run
    try:
        return load(source.location, **options)
    except (KeyboardInterrupt, MemoryError):
        raise
    except Exception as e:  # the libraries raise many kinds
        if source.is_local:
            raise BadInput(f"model {source.location}", f"can't be loaded: {_first_line(e)}") from e
        problem = f"not a local directory, and can't be had from the hub: {_first_line(e)}"
        fix = "check the name and the network, or give a local directory"
        raise BadInput(f"model {source.name}", problem, fix) from e


def _first_line(error: Exception) -> str:
    return (str(error).strip() or type(error).__name__).splitlines()[0]


def _quantisation(config: Any) -> str | None:
    """Method of the quantisation a checkpoint was saved with."""
    saved = getattr(config, "quantization_config", None)
    if saved is None:
        return None
    return str(saved.get("quant_method") if isinstance(saved, dict) else saved.quant_method)


def _check_causal(name: str, config: Any) -> None:
    architectures = getattr(config, "architectures", None) or []
    causal = [a for a in architectures if a.endswith(("ForCausalLM", "LMHeadModel"))]
    if getattr(config, "is_encoder_decoder", False) or (architectures and not causal):
        kind = ", ".join(architectures) or config.model_type
        problem = f"{kind} is not a causal language model, it has no log p(sentence)"
        raise BadInput(f"model {name}", problem, "give a left-to-right language model")


def _choose_bos(name: str, tokenizer: Any, config: Any, options: ModelOptions) -> tuple[str, int]:
    """The context token: the one asked for, the tokenizer's, the configuration's, the convention's.

    The configuration's counts only if the tokenizer holds it for a special token: several model
    types fill it with a default that means another token in the vocabulary at hand.
    """
    vocabulary = tokenizer.get_vocab()
    if options.bos is not None:
        if options.bos not in vocabulary:
            raise UsageProblem(f"--bos {options.bos}", f"is no single token of model {name}")
        return f"option: {options.bos}", vocabulary[options.bos]
    if tokenizer.bos_token_id is not None:
        return "tokenizer.bos_token", int(tokenizer.bos_token_id)
    special = {i for i, token in tokenizer.added_tokens_decoder.items() if token.special}
    special.update(tokenizer.all_special_ids)
    configured = getattr(config, "bos_token_id", None)
    if isinstance(configured, int) and configured in special:
        return "config.bos_token_id", configured
    convention = _BOS_CONVENTIONS.get(config.model_type)
    if convention in vocabulary:
        return f"convention: {convention}", vocabulary[convention]
    problem = "neither its tokenizer nor its configuration names a BOS token to start from"
    raise UsageProblem(f"model {name}", problem, "choose one of its tokens with --bos TOKEN")
