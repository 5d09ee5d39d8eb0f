"""Debias tuning: LoRA adapters trained on neutral prompts against the measures of disclosure."""
