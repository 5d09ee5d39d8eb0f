"""Sphinx's settings: `make docs` makes build/docs/index.html, and `make site` adds a report."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import typer.cli

from plumbline.pipelines.command.app import app as commands

project = "Plumbline"
html_title = "Plumbline"
html_theme = "furo"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_show_sourcelink = html_copy_source = html_show_copyright = False
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "sphinx.ext.githubpages"]
source_suffix = {".md": "markdown", ".ipynb": "markdown"}
myst_heading_anchors = 4
default_role = "code"
highlight_language = "text"
# The highlighter doesn't know SQL with $names, cells with !commands, and CSV.
suppress_warnings = ["misc.highlighting_failure"]
autodoc_member_order = "bysource"
autodoc_typehints_format = "short"

#: A line of the index, and the same in the navigation.
LISTED = (r"- \[(.*?)\]\((\S+)\): .*", r"\1 <\2>")
#: What the pages of Sphinx and the theme lack for a screen reader or a keyboard: the level of the
#: navigation's headings, names of two asides, and a way to scroll code and tables without a mouse.
MENDED = {
    'class="caption" role="heading">': 'class="caption" role="heading" aria-level="2">',
    '<aside class="sidebar-drawer">': '<aside class="sidebar-drawer" aria-label="All pages">',
    '<aside class="toc-drawer">': '<aside class="toc-drawer" aria-label="On this page">',
    '<div class="highlight"><pre>': '<div class="highlight"><pre tabindex="0">',
    '<div class="table-wrapper': '<div tabindex="0" class="table-wrapper',
}
#: What the site puts in the place of a comment `<!-- site: NAME -->`.
API = """```{eval-rst}
.. autofunction:: plumbline.open
.. autoclass:: plumbline.Warehouse
   :members:
```"""

#: `make site` writes this report.
RELEASED = """```{raw} html
<p><a href="released/index.html">Look at the report of 28 released models</a>: what they prefer,
whether that follows the Pile, with words and sentence pairs to search.</p>
```"""


def navigation(text: str) -> str:
    """Add a hidden list of pages to each section of the index, for the site's navigation."""
    parts = re.split(r"(?m)^(?=## )", text)
    for k, part in enumerate(parts[1:], start=1):
        title = part.partition("\n")[0].removeprefix("## ")
        pages = "\n".join(re.sub(*LISTED, line) for line in re.findall(r"(?m)^- \[.*\): ", part))
        parts[k] += f"\n```{{toctree}}\n:hidden:\n:caption: {title}\n\n{pages}\n```\n\n"
    return "".join(parts)


def options() -> str:
    """Return the help of every command, with its options, as Markdown."""
    root = typer.main.get_command(commands)
    context = typer.Context(root, info_name="plumbline")
    text = typer.cli.get_docs_for_click(obj=root, ctx=context, indent=2, name="plumbline")
    text = re.sub(r"(?m)^#{3,} ", "### ", text)
    text = text[text.index("\n### ") :]  # skip the help of `plumbline`
    text = re.sub(r"\*\*Commands\*\*:\n\n(\* .*\n)+", "", text)
    return re.sub(r"(?s)\nExample: (.*?)\n\n", r"\n```sh\n\1\n```\n\n", text)


def notebook(text: str) -> str:
    """Return a notebook as Markdown: its cells and their stored output."""
    parts = []
    for cell in json.loads(text)["cells"]:
        source = "".join(cell["source"])
        parts.append(f"```ipython3\n{source}\n```" if cell["cell_type"] == "code" else source)
        outputs = cell.get("outputs", [])
        said = "".join(part for output in outputs for part in output.get("text", ""))
        parts += [f"```\n{said.strip()}\n```"] if said.strip() else []
        parts += [shown(output["data"]) for output in outputs if "data" in output]
    return "\n\n".join(parts)


def shown(data: dict[str, Any]) -> str:
    """Return a cell's output as Markdown: a picture, a table, or text."""
    if "image/png" in data:
        picture = "".join(data["image/png"].split())
        return f'<img src="data:image/png;base64,{picture}" alt="plot of the cell above">'
    if "text/html" in data:
        return "````{raw} html\n" + "".join(data["text/html"]) + "\n````"
    return "```\n" + "".join(data["text/plain"]) + "\n```"


def on_read(app: Any, name: str, source: list[str]) -> None:
    """Prepare a page that Sphinx has read: convert notebooks, change links, fill placeholders."""
    if name.startswith("notebooks/"):
        source[0] = notebook(source[0])
    elif name == "index":
        source[0] = navigation(source[0])
        if app.tags.has("released"):
            source[0] = source[0].replace("<!-- site: released -->", RELEASED)
    else:
        # Show a page's title instead of the file name as the text of a link.
        source[0] = re.sub(r"\[`?[\w-]+\.(?:md|ipynb)`?\]\(", "[](", source[0])
        source[0] = source[0].replace("<!-- site: api -->", API)
        if "<!-- site: options -->" in source[0]:
            source[0] = source[0].replace("<!-- site: options -->", options())


def on_finish(app: Any, error: Exception | None) -> None:
    """Replace the keys of ``MENDED`` by their values in all HTML pages that Sphinx has written."""
    for page in Path(app.outdir).rglob("*.html"):
        html = page.read_text(encoding="utf-8")
        for lacking, mended in MENDED.items():
            html = html.replace(lacking, mended)
        page.write_text(html, encoding="utf-8")


def setup(app: Any) -> None:
    """Register this file's functions; Sphinx calls it."""
    app.connect("build-finished", on_finish)
    app.connect("source-read", on_read)
