-- grain: as view fit, those with a slope; t is Student's 97.5% point for the line's band
SELECT *, t975(slope_df) AS t FROM fit WHERE slope IS NOT NULL
ORDER BY subset, benchmark, groups, model, model_key, corpus, contrast, options;
