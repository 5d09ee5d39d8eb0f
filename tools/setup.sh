#!/usr/bin/env bash
# Make the virtual environment with the pinned versions. Usage: tools/setup.sh VENV [PYTHON]
set -euo pipefail
cd "$(dirname "$0")/.."
venv=$1
fits='import sys; sys.exit(not (3, 11) <= sys.version_info < (3, 14))'

python=${2:-}
if [ -z "$python" ]; then
    # The pins are tested most on 3.11, but a plain python3 of another supported version works too.
    for candidate in python3.11 python3.12 python3.13 python3; do
        if "$candidate" -c "$fits" 2>/dev/null; then python=$candidate; break; fi
    done
fi
if [ -z "$python" ] || ! "$python" -c "$fits"; then
    echo "error: no Python 3.11 to 3.13 found (install one, or: make setup PYTHON=/path/to/python)" >&2
    exit 4
fi

[ -x "$venv/bin/python" ] || "$python" -m venv "$venv"
pip=("$venv/bin/python" -m pip install --quiet --disable-pip-version-check)
echo "installing requirements.lock into $venv (a few minutes the first time)"
"${pip[@]}" -r requirements.lock
"${pip[@]}" --no-deps --no-build-isolation --editable .
echo "compiling the counting kernel (once per machine)"
"$venv/bin/python" -m plumbline.jobs.kernel.counter
