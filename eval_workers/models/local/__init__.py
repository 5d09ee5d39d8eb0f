"""Models that this process loads with transformers: files, weights and forward passes."""

import os

# Set before torch starts MKL. Then results don't depend on the number of threads, at equal speed.
os.environ.setdefault("MKL_CBWR", "AUTO,STRICT")
os.environ.setdefault("HF_HUB_DISABLE_TELEMETRY", "1")
# Otherwise transformers asks a remote service to convert weights to safetensors.
os.environ.setdefault("DISABLE_SAFETENSORS_CONVERSION", "1")
