-- grain: family (empty: all families) x scores x benchmark x groups x corpus x contrast x subset x measure
-- How measures change per tenfold number of parameters, where a set has four models or more in
-- families of several sizes.
FROM size_trend
QUALIFY max(n_models) OVER (
    PARTITION BY scores, benchmark, groups, corpus, contrast, subset, measure
) > 3
ORDER BY benchmark, groups, corpus, contrast, measure, scores, subset, family;
