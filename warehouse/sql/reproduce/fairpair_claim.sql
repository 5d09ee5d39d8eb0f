-- grain: set of runs on Common Sents x what section 4.1 tests, by model; the side `original`
-- kind `B`: p is that of the paper's t-test of B against V_pg, by scoring function, texts and folds
-- (`measure`). kind `length`: difference is by how many words p(g(x)) is longer than g(p(x)).
WITH named AS (
    SELECT model_key, min(model) AS model FROM continuation GROUP BY model_key
),
scored AS (
    SELECT s.*, coalesce(n.model, s.model_key) AS model
    FROM fairpair_set AS s
    LEFT JOIN named AS n USING (model_key)
    WHERE subset = 'all' AND side = 'original' AND starts_with(probe_set, 'common-sents')
)
SELECT
    'B' AS kind, probe_set, model, p_t AS p,
    concat_ws(
        ', ', phi, CASE texts WHEN 'as-published' THEN 'as published' END,
        CASE WHEN n_folds > 0 THEN n_folds || ' folds' END
    ) AS measure
FROM scored
WHERE p_t IS NOT NULL
UNION ALL BY NAME
SELECT DISTINCT
    'length' AS kind, probe_set, s.model, l.difference, l.difference_low, l.difference_high
FROM compared_length AS l
JOIN scored AS s USING (probe_set, model_key, sampling_key, perturber)
WHERE l.side = 'original'
ORDER BY ALL;
