"""Have a chat model write benchmarks around seed words: docs/generation.md, docs/pairs.md.

A plan asks the model for one thing: the sentences of a word, the template of a sentence, or the
verdict on a pair. ``eval_workers.chat`` carries out plans and keeps the replies in the ledger.
``build.py`` has the stages of a build.
"""
