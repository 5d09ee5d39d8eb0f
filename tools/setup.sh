#!/usr/bin/env bash
# Make the virtual environment with the pinned versions. Usage: tools/setup.sh VENV [PYTHON]
set -euo pipefail
cd "$(dirname "$0")/.."
venv=$1
fits='import sys; sys.exit(not (3, 10) <= sys.version_info < (3, 14))'

python=${2:-}
if [ -z "$python" ]; then
    # The pins were tried most on 3.11; a plain python3 of another fitting version does as well.
    for candidate in python3.11 python3.12 python3.13 python3 python3.10; do
        if "$candidate" -c "$fits" 2>/dev/null; then python=$candidate; break; fi
    done
fi
if [ -z "$python" ] || ! "$python" -c "$fits"; then
    echo "error: no Python 3.10 to 3.13 found (install one, or: make setup PYTHON=/path/to/python)" >&2
    exit 4
fi

[ -x "$venv/bin/python" ] || "$python" -m venv "$venv"
# Some pinned packages have ended their support of Python 3.10; it has pins of its own.
lock=$("$venv/bin/python" -c \
    'import sys; print("requirements" + ("-py310" if sys.version_info < (3, 11) else "") + ".lock")')
pip=("$venv/bin/python" -m pip install --quiet --disable-pip-version-check)
echo "installing $lock into $venv (a few minutes the first time)"
"${pip[@]}" -r "$lock"
# Before 0.2 the distribution had the name of the package.
"$venv/bin/python" -m pip uninstall --quiet --yes plumbline 2>/dev/null
"${pip[@]}" --no-deps --no-build-isolation --editable .
echo "compiling the counting kernel (once per machine)"
"$venv/bin/python" -m plumbline.jobs.kernel
