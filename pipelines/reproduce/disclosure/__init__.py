"""What only the paper on disclosure needs."""
