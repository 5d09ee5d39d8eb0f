"""Make GPT-NeoX models of Pythia's shapes with random weights, and sentences to score."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
import transformers
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import GPTNeoXConfig, GPTNeoXForCausalLM, PreTrainedTokenizerFast

from plumbline.eval_workers.pairs.benchmarks import import_benchmark
from plumbline.warehouse.input.shards import documents
from plumbline.warehouse.storage.store import Store

_BOS = "<|endoftext|>"
_N_TOKENS = 50_254


@dataclass(frozen=True)
class Shape:
    """Sizes of a Pythia model (Biderman et al., 2023, Table 1); ``rows``: its padded vocabulary."""

    hidden: int
    layers: int
    heads: int
    rows: int


SHAPES = {"70m": Shape(512, 6, 8, 50_304), "6.9b": Shape(4096, 32, 32, 50_432)}


def write_model(
    shards: Sequence[Path],
    directory: Path,
    shape: Shape = SHAPES["70m"],
    device: str = "cpu",
    dtype: str = "float32",
) -> Path:
    """Save random weights with a byte-level BPE of Pythia's size, learned from the shards.

    The weights are made on ``device``, since billions of them take minutes on a CPU.
    """
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=_N_TOKENS,
        special_tokens=[_BOS],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    texts = (text for shard in shards for text in documents(shard))
    tokenizer.train_from_iterator(texts, trainer)
    transformers.utils.logging.disable_progress_bar()
    torch.manual_seed(0)
    config = GPTNeoXConfig(
        vocab_size=shape.rows,
        hidden_size=shape.hidden,
        num_hidden_layers=shape.layers,
        num_attention_heads=shape.heads,
        intermediate_size=4 * shape.hidden,
        max_position_embeddings=2048,
        bos_token_id=0,
        eos_token_id=0,
    )
    with torch.device(device):
        model = GPTNeoXForCausalLM._from_config(config, dtype=getattr(torch, dtype))
    model.save_pretrained(directory)
    del model  # frees gigabytes for scoring on this device
    torch.cuda.empty_cache()
    PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, bos_token=_BOS, eos_token=_BOS
    ).save_pretrained(directory)
    return directory


def sentences(benchmark: str, warehouse: Path) -> tuple[list[str], int]:
    """Return a benchmark's distinct sentences in alphabetical order, and its number of pairs."""
    store = Store.open(warehouse)
    import_benchmark(store, benchmark, None, "bench")
    pairs = store.read("benchmark_pair", benchmark=benchmark).to_pylist()
    return sorted({pair[f"sentence_{side}"] for pair in pairs for side in "ab"}), len(pairs)
