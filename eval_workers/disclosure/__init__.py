"""Disclosure: the gender that a model assigns to a person of unspecified gender.

Prompts (``prompt_sets``, ``neutral``, ``written``) go to table ``probe_prompt``, probabilities of
gendered words after them (``word_probabilities``) to ``pronoun_probability``; GAS, GLD and ADD are
SQL.
"""
