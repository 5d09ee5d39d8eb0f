"""The application for spark-submit: the ``plumbline`` command with the arguments behind it.

``make dist`` copies it to ``dist/plumbline.py``, beside the archive that holds the command.
"""

from __future__ import annotations

from pipelines.cli import entry

if __name__ == "__main__":
    entry()
