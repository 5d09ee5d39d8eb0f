"""Inference over many figures at once: when curves change, ranks, power, corrections."""
