"""Have a chat model write benchmarks around seed words (docs/generation.md, docs/pairs.md).

A plan is a function that asks the model for one thing: sentences with a seed word, a sentence's
template, or the verdict on a pair. ``eval_workers.chat`` runs plans and keeps the replies in the
ledger. ``build.py`` has the steps of a build.
"""
