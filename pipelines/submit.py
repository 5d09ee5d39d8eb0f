"""The application for spark-submit: the ``plumbline`` command with the arguments that follow.

``make dist`` copies it to ``dist/submit.py``, beside the archive that holds the command.
"""

from __future__ import annotations

from plumbline.pipelines.command.main import entry

if __name__ == "__main__":
    entry()
