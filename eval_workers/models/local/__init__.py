"""Models that this process loads with transformers: their files, weights and passes."""

import os

# Set before torch starts MKL: results don't depend on the number of threads, at no cost in speed.
os.environ.setdefault("MKL_CBWR", "AUTO,STRICT")
os.environ.setdefault("HF_HUB_DISABLE_TELEMETRY", "1")
# Else transformers asks a remote service to convert weights to safetensors.
os.environ.setdefault("DISABLE_SAFETENSORS_CONVERSION", "1")
