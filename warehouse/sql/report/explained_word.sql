-- grain: corpus x contrast x word that `why WORD` explained, newest first
-- Words of `why --top` are left out: they have no word_copies.
FROM word_evidence SEMI JOIN word_copies USING (corpus, contrast, word)
ORDER BY run_id DESC, corpus, contrast, word;
