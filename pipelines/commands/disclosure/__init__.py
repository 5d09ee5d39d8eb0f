"""Commands on prompts that give no gender."""
