"""Disclosure: the gender that a model assigns to a person of unspecified gender.

``prompt_sets``, ``neutral`` and ``written`` make the prompts in table ``probe_prompt``.
``word_probabilities`` writes the probabilities of gendered words after a prompt to
``pronoun_probability``. SQL computes GAS, GLD and ADD.
"""
