"""The commands, a class each; see `docs/design.md`. Names come from file and class: `corpus.py`
with class ``Count`` is `plumbline corpus count`, `score.py` with class ``Score`` `plumbline score`.
"""
