-- grain: model_key x benchmark x groups x pronoun_first
-- US and PD of pairs that start with the pronoun and of those that don't, at epsilon = ln 1.65, with
-- their 95% intervals over clusters of pairs (`clustered`). At its start a sentence has said nothing
-- yet that could suggest a pronoun.
CREATE OR REPLACE VIEW us_by_start AS
WITH figure AS (
    SELECT
        {
            'model_key': model_key, 'model': model, 'benchmark': p.benchmark, 'groups': groups,
            'pronoun_first': pronoun_first
        } AS subject,
        cluster_1, cluster_2, stratum, lean(log_ratio_nats) AS numerator, 1 AS denominator
    FROM scored_pair AS p
    JOIN pair_cell USING (benchmark, pair_id)
),
even AS (SELECT * REPLACE ((numerator = 0)::INTEGER AS numerator) FROM figure)
SELECT
    unnest(u.subject), u.n AS n_pairs,
    u.value AS us, wilson_low(u.value, u.n_star, u.t) AS us_low,
    wilson_high(u.value, u.n_star, u.t) AS us_high,
    100 * p.value AS pd_points,
    100 * bonett_price(p.share_above, p.share_below, p.n_star, -p.t) AS pd_points_low,
    100 * bonett_price(p.share_above, p.share_below, p.n_star, p.t) AS pd_points_high,
    p.n_clusters
FROM clustered('even') AS u
JOIN clustered('figure') AS p USING (subject);
