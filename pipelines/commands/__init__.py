"""The commands, one class for each; `pipelines/command/registry.py` lists them."""
