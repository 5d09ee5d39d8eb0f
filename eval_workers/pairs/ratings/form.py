"""A sheet as one HTML file that works offline: pairs, questions, and a button for the answers."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from importlib import resources

from plumbline.eval_workers.pairs.ratings.questions import Wordings
from plumbline.warehouse.text.escape import policy_hash, terminal


def form_html(rater: str, items: Sequence[Mapping[str, str]], wordings: Wordings) -> str:
    """The page of a rater; the same items and wordings give the same page.

    It asks for nothing on a network, and its content security policy lets it ask for nothing. The
    browser keeps the answers; the file to send back has a column ``item`` and one per question.

    Args:
        items: ``item``, ``sentence_1`` and ``sentence_2`` of each pair, in their order.

    >>> from plumbline.eval_workers.pairs.ratings.questions import load
    >>> item = {"item": "ana-001-0", "sentence_1": "<b>She ran.", "sentence_2": "<b>He ran."}
    >>> "<q dir=\\"auto\\">&lt;b&gt;She ran.</q>" in form_html("ana", [item], load())
    True
    """
    import jinja2
    from markupsafe import Markup

    here = resources.files(__package__)
    texts = {name: (here / f"form.{name}").read_text("utf-8") for name in ("html", "css", "js")}
    environment = jinja2.Environment(
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=lambda v: terminal(v, lines=True) if type(v) is str else v,
    )
    environment.filters["sha256"] = policy_hash
    sheet = hashlib.sha256(" ".join(item["item"] for item in items).encode()).hexdigest()[:16]
    return environment.from_string(texts["html"]).render(
        rater=rater,
        items=items,
        wordings=wordings,
        sheet=sheet,
        style=Markup(texts["css"]),
        script=Markup(texts["js"]),
    )
