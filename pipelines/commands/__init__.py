"""The commands, a class each; `pipelines/command/registry.py` lists them."""
