"""The application for spark-submit: the ``plumbline`` command.

``make dist`` copies it to ``dist/submit.py``, beside the archive that has the command.
"""

from __future__ import annotations

from plumbline.pipelines.command.main import entry

if __name__ == "__main__":
    entry()
