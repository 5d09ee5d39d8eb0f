-- grain: subject x measure
-- Means over prompts of a measure of disclosure, or of its change from one model to another, with
-- 95% intervals over clusters of prompts (`prompt_cell`). `prompts` names a CTE with the columns
-- subject, measure, is_change, probe_set, prompt_id, is_one_topic (each prompt is then its own
-- cluster) and figure, NULL if undefined. Shares lie between 0 and 1 (changes: -1 and 1); add_nats
-- and add_normalised_nats are at least 0.
CREATE OR REPLACE MACRO over_prompts(prompts) AS TABLE
WITH figure AS (
    SELECT
        {'subject': subject, 'measure': measure, 'is_change': is_change} AS subject,
        probe_set || ' ' || if(is_one_topic, prompt_id, cluster_1) AS cluster_1,
        NULL::VARCHAR AS cluster_2, NULL::VARCHAR AS stratum,
        coalesce(figure, 0) AS numerator, (figure IS NOT NULL)::INTEGER AS denominator
    FROM query_table(prompts)
    JOIN prompt_cell USING (probe_set, prompt_id)
),
bounded AS (
    SELECT
        subject.*, * EXCLUDE (subject),
        NOT starts_with(subject.measure, 'add') AS is_share,
        CASE WHEN is_share THEN if(subject.is_change, -1, 0) END AS lowest,
        CASE WHEN is_share THEN 1 END AS highest,
        if(starts_with(subject.measure, 'gas'), n_most, 'infinity'::DOUBLE) AS n_rows,
        mean_low(value, se, t, lowest, highest, n_rows) AS low_end
    FROM clustered('figure')
)
SELECT
    subject, measure, is_change, n AS n_figures, value, n_clusters,
    if(is_share OR is_change OR low_end > 0 OR low_end IS NULL, low_end, 0) AS low,
    mean_high(value, se, t, lowest, highest, n_rows) AS high
FROM bounded;
