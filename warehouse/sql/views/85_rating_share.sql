-- grain: benchmark x question
-- Ratings of the pairs that metrics use: the mean share of a pair's raters who say yes, and the
-- share of pairs for which more than half of the raters do (a tie does not count as yes). Wilson's
-- 95% intervals over clusters of pairs (`clustered`).
CREATE OR REPLACE VIEW rating_share AS
WITH rated AS (FROM rated_pair WHERE is_natural IS NOT FALSE),
counted AS (
    SELECT
        {'benchmark': benchmark, 'question': question} AS subject,
        count(*) AS n_pairs,
        sum(n_raters)::BIGINT AS n_answers,
        min(n_raters) AS n_raters_least,
        max(n_raters) AS n_raters_most,
        count(*) FILTER (by_majority) AS n_majority
    FROM rated
    GROUP BY ALL
),
mean AS (
    SELECT
        {'benchmark': benchmark, 'question': question} AS subject,
        cluster_1, cluster_2, stratum,
        n_yes / n_raters AS numerator, 1 AS denominator, by_majority
    FROM rated
    JOIN pair_cell USING (benchmark, pair_id)
),
majority AS (
    SELECT * REPLACE (coalesce(by_majority, false)::INTEGER AS numerator) FROM mean
),
bounded AS (
    SELECT
        subject,
        a.value AS mean_share,
        mean_low(a.value, a.se, a.t, 0, 1, a.n_most) AS mean_share_low,
        mean_high(a.value, a.se, a.t, 0, 1, a.n_most) AS mean_share_high,
        m.value AS majority_share,
        wilson_low(m.value, m.n_star, m.t) AS majority_share_low,
        wilson_high(m.value, m.n_star, m.t) AS majority_share_high
    FROM clustered('mean') AS a
    JOIN clustered('majority') AS m USING (subject)
)
SELECT
    unnest(subject), n_pairs, n_answers, n_raters_least, n_raters_most,
    mean_share, mean_share_low, mean_share_high, n_majority,
    majority_share, majority_share_low, majority_share_high
FROM counted
JOIN bounded USING (subject);
