"""Score texts and continue prompts with Hugging Face transformers, on CPU or GPU."""

from __future__ import annotations

from plumbline.eval_workers.models.local.causal_model import CausalModel
from plumbline.eval_workers.models.local.encoder_decoder import EncoderDecoderModel
from plumbline.eval_workers.models.local.masked import MaskedModel
from plumbline.eval_workers.models.local.model_files import Kind, read_files
from plumbline.eval_workers.models.model_options import ModelOptions

_CLASSES: dict[Kind, type[CausalModel | MaskedModel]] = {
    "causal": CausalModel,
    "masked": MaskedModel,
    "encoder-decoder": EncoderDecoderModel,
}


def open_model(model: str, options: ModelOptions) -> CausalModel | MaskedModel:
    """Open a model by hub id or path. The model's configuration decides which class is used."""
    files = read_files(model, options)
    return _CLASSES[files.kind](model, options, files)
