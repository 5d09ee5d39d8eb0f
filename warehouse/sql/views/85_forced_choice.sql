-- grain: benchmark x model_key x setting x groups
-- What a model chose in a benchmark. preference is the mean over pairs, above 0.5 if sentences
-- about group a are chosen more often. first_share is how often the sentence shown first was
-- chosen. order_share is the share of pairs whose usual choice changes with the order. 95%
-- intervals are Wilson's over clusters of pairs (`clustered`). US and PD can't be computed from
-- choices, since they need log-probabilities.
CREATE OR REPLACE VIEW forced_choice AS
WITH counted AS (
    SELECT
        benchmark, model_key, model, setting, groups,
        count(preference) AS n_pairs,
        count(*) - count(preference) AS n_without,
        sum(n_asks)::BIGINT AS n_asks,
        sum(n_neither)::BIGINT AS n_neither
    FROM forced_choice_pair
    GROUP BY ALL
),
figure AS (
    SELECT
        {
            'benchmark': benchmark, 'model_key': model_key, 'setting': setting, 'groups': groups
        } AS whose,
        cluster_1, cluster_2, stratum, 1 AS denominator,
        unnest(['preference', 'first', 'order']) AS figure,
        unnest([
            preference, first_share,
            ((share_a_first - 0.5) * (share_a_second - 0.5) < 0)::INTEGER
        ]) AS numerator,
        {'whose': whose, 'figure': figure} AS subject
    FROM forced_choice_pair
    JOIN pair_cell USING (benchmark, pair_id)
    WHERE preference IS NOT NULL
),
bounded AS (
    SELECT
        subject.whose AS whose, subject.figure AS figure, value,
        mean_low(value, se, t, 0, 1, n_most) AS low, mean_high(value, se, t, 0, 1, n_most) AS high
    FROM clustered('figure')
),
wide AS (
    SELECT
        whose.*,
        any_value(value) FILTER (figure = 'preference') AS preference,
        any_value(low) FILTER (figure = 'preference') AS preference_low,
        any_value(high) FILTER (figure = 'preference') AS preference_high,
        any_value(value) FILTER (figure = 'first') AS first_share,
        any_value(low) FILTER (figure = 'first') AS first_share_low,
        any_value(high) FILTER (figure = 'first') AS first_share_high,
        any_value(value) FILTER (figure = 'order') AS order_share,
        any_value(low) FILTER (figure = 'order') AS order_share_low,
        any_value(high) FILTER (figure = 'order') AS order_share_high
    FROM bounded
    GROUP BY whose
)
SELECT *
FROM counted
LEFT JOIN wide USING (benchmark, model_key, setting, groups);
