-- grain: benchmark x model_key: scores by outcome, and the pairs that metrics counted
-- n_measured is NULL if `measure` has not run since scores changed. n_usable counts the benchmark's
-- pairs that aren't marked unnatural. n_missing of them have no score, n_rejected of these because
-- the model can't score them.
WITH scored AS (
    SELECT
        s.benchmark, s.model_key, s.model,
        count(*) AS n_scored,
        count(*) FILTER (b.pair_id IS NULL) AS n_unknown,
        count(*) FILTER (b.is_natural IS FALSE) AS n_unnatural,
        count(p.pair_id) AS n_pairs
    FROM pair_score AS s
    LEFT JOIN benchmark_pair AS b USING (benchmark, pair_id)
    LEFT JOIN scored_pair AS p USING (benchmark, pair_id, model_key)
    GROUP BY ALL
)
SELECT
    s.*,
    n_scored - n_unknown - n_unnatural - n_pairs AS n_not_finite,
    m.n AS n_measured,
    u.n AS n_usable,
    greatest(coalesce(u.n, 0) - (n_scored - n_unknown - n_unnatural), 0) AS n_missing,
    least(coalesce(r.n, 0), n_missing) AS n_rejected
FROM scored AS s
LEFT JOIN (
    SELECT benchmark, model_key, sum(n)::BIGINT AS n
    FROM metric_value
    WHERE metric = 'n' AND subset = 'all'
    GROUP BY ALL
) AS m USING (benchmark, model_key)
LEFT JOIN (
    SELECT benchmark, count(*) AS n
    FROM benchmark_pair
    WHERE is_natural IS NOT FALSE
    GROUP BY ALL
) AS u USING (benchmark)
LEFT JOIN (
    SELECT subject, count(*) AS n
    FROM reject
    WHERE stage = 'score'
    GROUP BY subject
) AS r ON r.subject = s.model_key || '/' || s.benchmark
ORDER BY s.benchmark, s.model, s.model_key;
