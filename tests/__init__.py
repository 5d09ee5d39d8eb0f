"""Tests; the oracles in them share no code with what they test."""
