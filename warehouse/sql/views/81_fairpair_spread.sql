-- grain: row of `fairpair_set` with subset `all`, for sets of two prompts or more
-- Student's 95% intervals of the means B, V_pg and V_gp in fairpair_set, over clusters of prompts
-- (`prompt_cell`). NULL below five clusters, and if all prompts have the same figure.
CREATE OR REPLACE VIEW fairpair_spread AS
WITH figure AS (
    SELECT
        {
            'probe_set': probe_set, 'model_key': model_key, 'sampling_key': sampling_key,
            'perturber': perturber, 'phi': phi, 'texts': texts,
            'n_folds': n_folds, 'side': side, 'subset': 'all'
        } AS whose,
        cluster_1, NULL::VARCHAR AS cluster_2, NULL::VARCHAR AS stratum, 1 AS denominator,
        unnest(['b', 'pg', 'gp']) AS figure,
        unnest([bias_b, variability_pg, variability_gp]) AS numerator,
        {'whose': whose, 'figure': figure} AS subject
    FROM fairpair_prompt
    JOIN prompt_cell USING (probe_set, prompt_id)
    WHERE bias_b IS NOT NULL AND variability_pg IS NOT NULL AND variability_gp IS NOT NULL
),
bounded AS (
    SELECT
        subject.whose AS whose, subject.figure AS figure,
        mean_low(value, se, t) AS low, mean_high(value, se, t) AS high
    FROM clustered('figure')
    WHERE n > 1
)
SELECT
    whose.*,
    any_value(low) FILTER (figure = 'b') AS bias_b_low,
    any_value(high) FILTER (figure = 'b') AS bias_b_high,
    any_value(low) FILTER (figure = 'pg') AS variability_pg_low,
    any_value(high) FILTER (figure = 'pg') AS variability_pg_high,
    any_value(low) FILTER (figure = 'gp') AS variability_gp_low,
    any_value(high) FILTER (figure = 'gp') AS variability_gp_high
FROM bounded
GROUP BY whose;
