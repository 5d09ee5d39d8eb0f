"""The command ``plumbline`` as ``python -m plumbline``, and the application for spark-submit."""

from plumbline.pipelines.command.main import entry

entry()
