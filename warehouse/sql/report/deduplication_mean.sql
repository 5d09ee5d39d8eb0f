-- grain: scores x benchmark x groups x corpus x contrast x subset x measure
-- The mean over models of the changes in deduplication.sql, with its 95% interval over models.
FROM deduplication_mean()
ORDER BY benchmark, groups, corpus, contrast, subset, measure, scores;
