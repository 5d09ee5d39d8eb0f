-- grain: as control, its rows of delta between the benchmark's groups
SELECT * FROM control WHERE predictor = 'delta' AND is_between(contrast, groups)
ORDER BY subset, benchmark, groups, model, model_key, corpus, contrast, ngram_key;
