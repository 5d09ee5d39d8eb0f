"""The task for lm-evaluation-harness, and scores read from its logs."""
