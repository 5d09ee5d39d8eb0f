"""Published tables from published scores: what a paper printed beside what its data give here."""
