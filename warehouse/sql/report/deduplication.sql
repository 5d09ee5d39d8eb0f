-- grain: model x scores x benchmark x groups x corpus x contrast x subset x measure
-- What changes from each model to its -deduped twin; 95% intervals over pairs.
FROM deduplication()
ORDER BY benchmark, groups, corpus, contrast, subset, measure, scores, model;
