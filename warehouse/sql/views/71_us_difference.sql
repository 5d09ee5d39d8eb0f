-- grain: model_key_a x model_key_b x groups, one row per groups unless a name has several scoring identities
-- US(model_a) - US(model_b) over the pairs that both scored, each pair with both of its scores, and its
-- interval over clusters of pairs (Bonett and Price's, see `clustered`), e.g.
-- `FROM us_difference('A', 'B', 'use-5')`. Models are given by name or key.
CREATE OR REPLACE MACRO us_difference(
    model_a, model_b, benchmark_name, epsilon := ln(1.65)
) AS TABLE
WITH shared AS (
    SELECT
        {
            'model_a': a.model, 'model_b': b.model, 'benchmark': a.benchmark, 'groups': a.groups,
            'model_key_a': a.model_key, 'model_key_b': b.model_key
        } AS subject,
        cluster_1, cluster_2, stratum,
        (lean(a.log_ratio_nats, epsilon) = 0)::INTEGER AS even_a,
        (lean(b.log_ratio_nats, epsilon) = 0)::INTEGER AS even_b,
        even_a - even_b AS numerator, 1 AS denominator
    FROM scored_pair AS a
    JOIN scored_pair AS b ON b.benchmark = a.benchmark AND b.pair_id = a.pair_id
    JOIN pair_cell AS c ON c.benchmark = a.benchmark AND c.pair_id = a.pair_id
    WHERE a.benchmark = benchmark_name
        AND model_a IN (a.model, a.model_key)
        AND model_b IN (b.model, b.model_key)
),
each AS (SELECT subject, avg(even_a) AS us_a, avg(even_b) AS us_b FROM shared GROUP BY subject)
SELECT
    subject.model_a, subject.model_b, subject.benchmark, subject.groups,
    us_a, us_b, value AS difference, se AS difference_se,
    bonett_price(share_above, share_below, n_star, -t) AS difference_low,
    bonett_price(share_above, share_below, n_star, t) AS difference_high,
    n AS n_pairs, n_clusters, subject.model_key_a, subject.model_key_b
FROM clustered('shared')
JOIN each USING (subject)
ORDER BY
    subject.model_a, subject.model_key_a, subject.model_b, subject.model_key_b, subject.groups;
