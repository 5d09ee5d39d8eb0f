"""Load models with transformers and run them in this process."""

import os

# Make MKL's results independent of the number of threads. MKL reads this when torch starts MKL.
os.environ.setdefault("MKL_CBWR", "AUTO,STRICT")
os.environ.setdefault("HF_HUB_DISABLE_TELEMETRY", "1")
# Otherwise transformers asks a remote service to convert weights to safetensors.
os.environ.setdefault("DISABLE_SAFETENSORS_CONVERSION", "1")
