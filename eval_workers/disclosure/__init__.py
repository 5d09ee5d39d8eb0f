"""Disclosure: the gender that a model assigns to a person of unspecified gender.

Prompts (``prompt_sets``, ``neutral``, ``written``) go to table ``probe_prompt``. The probabilities
of gendered words after a prompt (``word_probabilities``) go to ``pronoun_probability``. GAS, GLD
and ADD are computed in SQL.
"""
