-- grain: series x setting x step x benchmark x groups x corpus x contrast x measure
-- The curves of a model's checkpoints by the step of training, over pairs and points that every
-- step has. Measures: us (a share), pd (percentage points), mean log ratio (nats) over n pairs; for
-- each corpus the slope on the lean of its text (nats per nat) and its explained variance (the
-- square of the correlation) over n words. See `checkpoint_part`.
--
-- value_low, value_high   95% interval of the value: that of the metrics us, pd, slope and correlation; of the
--             mean log ratio Student's, clustered by word
-- change      the value minus that of the step before (NULL at the first step), with Student's 95%
--             interval. It is paired over steps, because the same words are at both, and clustered
--             by word, because pairs made for one word are alike: the closed form of the variance
--             of a sum of the words' differences, linearised for the explained variance. That
--             counts as too sure where both explained variances are near 0. change_se is its
--             standard error with df degrees of freedom
CREATE OR REPLACE VIEW checkpoint_curve AS
WITH figure AS (
    SELECT
        {
            'series': series, 'setting': setting, 'step': step, 'benchmark': c.benchmark,
            'groups': groups, 'measure': measure
        } AS subject,
        cluster_1, cluster_2, stratum, numerator, 1 AS denominator
    FROM (
        SELECT
            *, unnest(['us', 'pd']) AS measure,
            unnest([(lean(log_ratio_nats) = 0)::INTEGER, lean(log_ratio_nats)]) AS numerator
        FROM checkpoint_pair
    ) AS c
    JOIN pair_cell USING (benchmark, pair_id)
),
of_pairs AS (
    SELECT
        unnest(subject),
        if(
            subject.measure = 'us', wilson_low(value, n_star, t),
            100 * bonett_price(share_above, share_below, n_star, -t)
        ) AS pair_low,
        if(
            subject.measure = 'us', wilson_high(value, n_star, t),
            100 * bonett_price(share_above, share_below, n_star, t)
        ) AS pair_high
    FROM clustered('figure')
),
moved AS (
    SELECT
        *,
        influence - lag(influence) OVER (
            PARTITION BY series, setting, benchmark, groups, corpus, contrast, measure, point
            ORDER BY step
        ) AS moved
    FROM checkpoint_part
),
gathered AS (
    SELECT
        series, setting, step, model_key, benchmark, groups, corpus, contrast, measure,
        any_value(n) AS n, any_value(value) AS value,
        any_value(df) AS df_of_fit,
        count(*) AS n_points,
        sum(influence ** 2 ORDER BY point) AS squares,
        sum(moved ** 2 ORDER BY point) AS moved_squares
    FROM moved
    GROUP BY ALL
),
beside AS (
    SELECT
        *,
        if(corpus = '', nullif(n_points - 1, 0), df_of_fit) AS df,
        -- HC3's influences of fits need no factor for the number of points
        if(corpus = '', n_points / df, 1) AS factor,
        t975(df) * sqrt(factor * squares) AS half,
        sqrt(factor * moved_squares) AS change_se,
        value - lag(value) OVER (
            PARTITION BY series, setting, benchmark, groups, corpus, contrast, measure
            ORDER BY step
        ) AS change
    FROM gathered
),
bounded AS (
    SELECT
        *,
        -- on the scale of Fisher's z of the correlation r, value = r ** 2
        half / nullif(2 * sqrt(abs(value)) * (1 - value), 0) AS z_half
    FROM beside
)
SELECT
    series, setting, step, model_key, benchmark, groups, corpus, contrast, measure, n, value,
    CASE measure
        WHEN 'us' THEN pair_low
        WHEN 'pd' THEN pair_low
        WHEN 'explained variance'
            THEN CASE WHEN n > 3 THEN greatest(0, fisher_bound(sqrt(value), -z_half)) ** 2 END
        ELSE value - half
    END AS value_low,
    CASE measure
        WHEN 'us' THEN pair_high
        WHEN 'pd' THEN pair_high
        WHEN 'explained variance'
            THEN CASE WHEN n > 3 THEN fisher_bound(sqrt(value), z_half) ** 2 END
        ELSE value + half
    END AS value_high,
    change, change - t975(df) * change_se AS change_low, change + t975(df) * change_se AS change_high,
    change_se, df
FROM bounded
LEFT JOIN of_pairs USING (series, setting, step, benchmark, groups, measure);
