"""Benchmarks written by a chat model around seed words: docs/generation.md, docs/pairs.md.

The modules that check sentences, choose the next requests and read verdicts are pure.
``eval_workers.chat`` sends requests and stores the replies in the ledger; ``build.py`` calls both.
"""
