"""Count words and pairs in a corpus, and measure associations, on this machine or on Spark."""
