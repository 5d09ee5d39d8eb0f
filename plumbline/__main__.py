"""Run the command ``plumbline``, by ``python -m plumbline`` or as spark-submit's application."""

from plumbline.pipelines.command.main import entry

entry()
