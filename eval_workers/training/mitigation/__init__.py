"""Debias tuning: an adapter that makes a model say less of a gender that the prompt leaves open.

``tune`` trains LoRA weights on neutral prompts against the measures of ``eval_workers.disclosure``.
Its modules may import torch; see ``options`` for what is tuned and ``tune`` for the step.
"""
