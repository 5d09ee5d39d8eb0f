"""Benchmarks that write themselves: a chat model writes sentences around seed words.

What is decided (pronouns, parsing, checks, which request comes next) is in pure modules;
``client.py``, ``asker.py`` and ``ledger.py`` ask and remember; ``session.py`` joins the two. See
``docs/generation.md`` and ``docs/pairs.md``.
"""
