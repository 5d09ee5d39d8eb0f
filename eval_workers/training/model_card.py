"""README files of trained models and tuned adapters. Pure."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from plumbline.warehouse.run_records import package_versions


def model_card(facts: Mapping[str, Any]) -> str:
    """README of a trained model: a table of ``facts``, columns of ``trained_model`` among them."""
    return f"""# {facts["model"]}

A language model that Plumbline trained on one corpus, so that its preferences can be compared with
the text it learned from. It is an instrument, not a model to write with.

{_table(facts)}
"""


def adapter_card(row: Mapping[str, Any]) -> str:
    """README of a tuned adapter, with PEFT's header, from its row of ``tuning``."""
    facts = {name: value for name, value in row.items() if name not in ("path", "adapter")}
    return f"""---
base_model: {json.dumps(row["base"], ensure_ascii=False)}
library_name: peft
tags:
- lora
---
# {row["tuning"]}

An adapter that Plumbline tuned so that its base says less of the gender of a person when the prompt
leaves it unspecified. It holds changes of weights only: load it on exactly this base.

Tuned {tuned_by(row)}. Rows are columns of the table `tuning`. Losses are means over the prompts of
the first and of the last steps, with dropout: L_d is `distance`, L_g `total`, L_l `difference`.

{_table(facts)}

## What it must not be used for

- As proof that a model is fair: it was tuned on the measures GLD (L_l), ADD (L_d). Only prompts it
  was not tuned on are evidence, and not of other harms.
- Where gender is known or matters (medicine, law, translation, biography): gendered words are made
  unlikely, also where they are right.
- To decide about people.
- On another base, or another revision of it.
- Without a test of what else has changed: fluency and knowledge were not measured in tuning.
"""


def tuned_by(figures: Mapping[str, Any]) -> str:
    """How an adapter was tuned: as published or by our default.

    >>> ours = {"as_published": None, "clip_norm": 1.0, "base_quantisation": None}
    >>> tuned_by(ours)
    "by Plumbline's default: losses are means, gradients clipped at norm 1, base not quantised"
    >>> tuned_by(ours | {"as_published": True, "base_quantisation": "bitsandbytes nf4 0.45"})
    'as published: losses are sums, gradients not clipped, base bitsandbytes nf4 0.45'
    """
    base = f"base {figures['base_quantisation'] or 'not quantised'}"
    if figures["as_published"]:
        return f"as published: losses are sums, gradients not clipped, {base}"
    clip = f"gradients clipped at norm {figures['clip_norm']:g}"
    return f"by Plumbline's default: losses are means, {clip}, {base}"


def _table(facts: Mapping[str, object]) -> str:
    """A Markdown table of the facts that are known, and of the packages' versions."""
    versions = {name: package_versions()[name] for name in ("torch", "transformers", "peft")}
    rows = [
        f"| {name} | {f'{value:.6g}' if isinstance(value, float) else value} |"
        for name, value in {**facts, **versions}.items()
        if value is not None
    ]
    return "\n".join(["| | |", "|---|---|", *rows])
