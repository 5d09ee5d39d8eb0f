"""A 70 M-parameter GPT-NeoX of the Pythia shape, and the sentences it is to score."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import torch
import transformers
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import GPTNeoXConfig, GPTNeoXForCausalLM, PreTrainedTokenizerFast

from plumbline.eval_workers.benchmarks import import_benchmark
from plumbline.warehouse.shards import documents
from plumbline.warehouse.storage.store import Store

_BOS = "<|endoftext|>"
#: Sizes of Pythia-70m (Biderman et al., 2023, Table 1); its vocabulary is padded.
_N_TOKENS, _N_ROWS = 50_254, 50_304


def write_model(shards: Sequence[Path], directory: Path) -> Path:
    """Save random weights with a byte-level BPE of Pythia's size, learned from the shards."""
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
        vocab_size=_N_ROWS,
        hidden_size=512,
        num_hidden_layers=6,
        num_attention_heads=8,
        intermediate_size=2048,
        max_position_embeddings=2048,
        bos_token_id=0,
        eos_token_id=0,
    )
    GPTNeoXForCausalLM(config).save_pretrained(directory)
    PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, bos_token=_BOS, eos_token=_BOS
    ).save_pretrained(directory)
    return directory


def sentences(benchmark: str, warehouse: Path) -> tuple[list[str], int]:
    """The distinct sentences of a benchmark's pairs in alphabetical order, and its pairs."""
    store = Store.open(warehouse)
    import_benchmark(store, benchmark, None, "bench")
    pairs = store.read("benchmark_pair", benchmark=benchmark).to_pylist()
    return sorted({pair[f"sentence_{side}"] for pair in pairs for side in "fm"}), len(pairs)
