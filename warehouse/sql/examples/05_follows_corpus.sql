-- grain: model_key x benchmark x groups x corpus x contrast
-- Which models' preference follows the corpus?
-- For each model, a line is fitted through its log ratios, word by word, against the lean in the
-- text. If pairs were made for no word, the word that decides their MaxPMI is used. slope is how
-- many nats the preference changes per nat in the text, se its standard error, correlation how
-- closely. If it is near 0, the model leans for other reasons.
SELECT
    coalesce(label, model) AS model, benchmark, groups, corpus, contrast, subset AS points, n,
    round(slope, 3) AS slope,
    round(slope_se, 3) AS se,
    round(correlation, 3) AS correlation
FROM fit
LEFT JOIN model_label USING (model_key)
WHERE subset IN ('words, measured delta', 'words, max_pmi')
ORDER BY correlation DESC NULLS LAST, 1, benchmark, groups, corpus, contrast;
