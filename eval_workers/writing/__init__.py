"""Benchmarks written by a chat model around seed words: docs/generation.md, docs/conversion.md.

The modules of checks, next requests and verdicts are pure; ``eval_workers.chat`` sends requests and
writes the ledger; ``build.py`` connects the two.
"""
