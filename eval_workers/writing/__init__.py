"""Benchmarks written by a chat model around seed words: docs/generation.md, docs/conversion.md.

Wordings, checks, the next request and verdicts are pure modules; ``eval_workers.chat`` asks and
keeps the ledger, ``build.py`` joins the two.
"""
