"""Benchmarks that write themselves: a chat model writes sentences around seed words.

What is decided (wordings, checks, which request comes next, verdicts) is in pure modules;
``eval_workers.chat`` asks and remembers, ``build.py`` joins the two. See ``docs/generation.md`` and
``docs/conversion.md``.
"""
