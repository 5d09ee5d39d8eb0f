-- grain: benchmark x question
-- What people find, over the rated pairs that metrics use: the share of which more than half of the
-- raters say yes (a tie does not count as yes), and of the pairs with five or more raters the share
-- to which at least five say yes (NULL without such pairs), with Wilson's 95% intervals over clusters
-- of pairs (`clustered`).
CREATE OR REPLACE VIEW rating_share AS
WITH rated AS (FROM rated_pair WHERE is_natural IS NOT FALSE),
counted AS (
    SELECT
        benchmark, question,
        count(*) AS n_pairs,
        sum(n_raters)::BIGINT AS n_answers,
        min(n_raters) AS n_raters_least,
        max(n_raters) AS n_raters_most,
        count(*) FILTER (by_majority) AS n_majority,
        count(*) FILTER (n_raters >= 5) AS n_pairs_five,
        count(*) FILTER (n_yes >= 5) AS n_five
    FROM rated
    GROUP BY ALL
),
majority AS (
    SELECT
        {'benchmark': benchmark, 'question': question} AS subject,
        cluster_1, cluster_2, stratum,
        coalesce(by_majority, false)::INTEGER AS numerator, 1 AS denominator, n_raters, n_yes
    FROM rated
    JOIN pair_cell USING (benchmark, pair_id)
),
five AS (
    SELECT * REPLACE ((n_yes >= 5)::INTEGER AS numerator, (n_raters >= 5)::INTEGER AS denominator)
    FROM majority
),
bounded AS (
    SELECT
        unnest(m.subject),
        m.value AS majority_share,
        wilson_low(m.value, m.n_star, m.t) AS majority_share_low,
        wilson_high(m.value, m.n_star, m.t) AS majority_share_high,
        f.value AS five_share,
        wilson_low(f.value, f.n_star, f.t) AS five_share_low,
        wilson_high(f.value, f.n_star, f.t) AS five_share_high
    FROM clustered('majority') AS m
    JOIN clustered('five') AS f USING (subject)
)
SELECT
    benchmark, question, n_pairs, n_answers, n_raters_least, n_raters_most, n_majority,
    majority_share, majority_share_low, majority_share_high,
    n_pairs_five, n_five, five_share, five_share_low, five_share_high
FROM counted
JOIN bounded USING (benchmark, question);
