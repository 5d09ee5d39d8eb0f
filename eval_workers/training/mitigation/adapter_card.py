"""README of a tuned adapter. Pure."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from plumbline.warehouse.storage.run_records import package_versions

_LOSSES = (
    ("L_d, distance of each pair's words, nats", "distance", "_nats"),
    ("L_g, probability of all gendered words", "total", ""),
    ("L_l, difference of the sides over their sum", "difference", ""),
)


def adapter_card(figures: Mapping[str, Any]) -> str:
    """Markdown with PEFT's header, from the columns of table ``tuning``.

    The columns `adapter`, `path` and `run_id` may be missing.
    """
    versions = package_versions()
    made_with = ", ".join(f"{n} {versions[n]}" for n in ("torch", "transformers", "peft"))
    quantisation = figures["base_quantisation"] or "not quantised"
    facts = {
        "base": f"{figures['base']}, revision {figures['base_revision']}",
        "base while tuning": f"{figures['base_dtype']}, {quantisation}, frozen",
        "tuned on": f"{figures['n_prompts']:,} neutral prompts of {figures['probe_sets']}",
        "hash of the prompts": figures["prompts_hash"],
        "checked against": figures["test_sets"] or "no test set",
        "left out": f"{figures['n_left_out']:,} prompts ({figures['n_leaks']:,} in a test or "
        "dev set)",
        **_leaks_kept(figures),
        **_chosen(figures),
        "word list": f"{figures['word_list']} ({figures['word_list_hash']})",
        "adapter": f"LoRA, rank {figures['rank']}, alpha {figures['alpha']}, dropout "
        f"{figures['dropout']}, in {figures['layers']}",
        "parameters": f"{figures['n_parameters']:,}",
        "steps": f"{figures['n_steps']:,} of {figures['batch_prompts']} prompts",
        "optimiser": f"AdamW, rate {figures['learning_rate']}",
        "how": tuned_by(figures),
        "prompt limit": f"{figures['max_tokens']} tokens with a word after it",
        "smoothing of L_d": figures["distance_smoothing"],
        "seed": figures["seed"],
        "made with": made_with,
    }
    table = "\n".join(f"| {name} | {value} |" for name, value in facts.items())
    losses = "\n".join(
        f"| {name} | {figures[f'{column}_weight']:g} | {figures[f'{column}_start{unit}']:.6g} "
        f"| {figures[f'{column}_end{unit}']:.6g} |"
        for name, column, unit in _LOSSES
    )
    return f"""---
base_model: {json.dumps(figures["base"], ensure_ascii=False)}
library_name: peft
tags:
- lora
---
# {figures["tuning"]}

An adapter that Plumbline tuned so that its base says less of the gender of a person when the prompt
leaves it unspecified. It holds changes of weights only: load it on exactly this base.

| | |
|---|---|
{table}

Losses are means over the prompts of the first and of the last steps, with dropout.

| loss | weight | first steps | last steps |
|---|---|---|---|
{losses}

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
    """Phrase on how an adapter was tuned: as published or by our default.

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


def _leaks_kept(figures: Mapping[str, Any]) -> dict[str, str]:
    """The row on prompts that were tuned on though a test set has them, if any."""
    n = figures["n_leaks_kept"]
    return {"in a test set, too": f"{n:,} of the prompts it was tuned on"} if n else {}


def _chosen(figures: Mapping[str, Any]) -> dict[str, str]:
    """The step chosen by the dev prompts; nothing without any."""
    if figures.get("chosen_step") is None:
        return {}
    return {
        "chosen step": f"{figures['chosen_step']:,}: of the steps measured on the "
        f"{figures['n_dev_prompts']:,} prompts of {figures['dev_sets']}, the one with the least "
        f"weighted sum of losses, {figures['dev_loss']:.6g}; the last step has "
        f"{figures['dev_loss_end']:.6g}"
    }
