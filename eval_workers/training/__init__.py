"""Small models trained from nothing on a corpus."""
