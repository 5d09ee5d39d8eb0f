"""Disclosure: which gender a model gives a person of unspecified gender.

Prompts (``probes``, ``derive``, ``written``) go to table ``probe_prompt``, probabilities of
gendered words after them (``attributes``, ``probe``) to ``pronoun_probability``; GAS, GLD and ADD
are SQL.
"""
