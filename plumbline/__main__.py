"""Run the command ``plumbline``, either with ``python -m plumbline`` or through spark-submit."""

from plumbline.pipelines.command.main import entry

entry()
