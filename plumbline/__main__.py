"""``python -m plumbline`` is the command ``plumbline``, where that is not on the path."""

from plumbline.pipelines.command.main import entry

entry()
