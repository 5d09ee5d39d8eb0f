"""Builds the package with the script that draws the report's charts, which vl-convert brings.

The script isn't in the repository: 900 kB of somebody else's code.
"""

from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py


class BuildWithVega(build_py):
    """``build_py`` that first writes ``plumbline/pipelines/report/vega.js``."""

    def run(self) -> None:
        import vl_convert

        # An sdist has the package's path only, a checkout also the room that it links to.
        script = Path(__file__).parent / "plumbline" / "pipelines" / "report" / "vega.js"
        script.write_text(vl_convert.javascript_bundle(), encoding="utf-8")
        super().run()


setup(cmdclass={"build_py": BuildWithVega})
