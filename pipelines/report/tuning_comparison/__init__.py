"""The page of `plumbline disclosure compare`: what tuning changed, and its cost."""
