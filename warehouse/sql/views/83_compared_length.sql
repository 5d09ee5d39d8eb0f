-- grain: probe_set x model_key x sampling_key x perturber x side
-- Whether the texts of both groups of `compared_text` are equally long: the mean number of words
-- (`words_of`) in each group, over prompts. difference is p(g(x)) minus g(p(x)), with Student's 95%
-- interval over clusters of prompts (`prompt_cell`).
CREATE OR REPLACE VIEW compared_length AS
WITH prompt AS (
    SELECT
        probe_set, model_key, sampling_key, perturber, side, prompt_id,
        avg(len(words_of(text))) FILTER (is_perturbed) AS perturbed,
        avg(len(words_of(text))) FILTER (NOT is_perturbed) AS other
    FROM compared_text
    GROUP BY ALL
),
figure AS (
    SELECT
        {
            'probe_set': probe_set, 'model_key': model_key, 'sampling_key': sampling_key,
            'perturber': perturber, 'side': side
        } AS subject,
        cluster_1, NULL::VARCHAR AS cluster_2, NULL::VARCHAR AS stratum, perturbed, other,
        perturbed - other AS numerator, 1 AS denominator
    FROM prompt
    JOIN prompt_cell USING (probe_set, prompt_id)
    WHERE numerator IS NOT NULL
),
mean AS (
    SELECT subject, avg(perturbed) AS words_perturbed, avg(other) AS words_other
    FROM figure
    GROUP BY subject
),
bounded AS (
    SELECT
        c.subject AS whose, n AS n_prompts, n_clusters, words_perturbed, words_other,
        value AS difference, mean_low(value, se, t) AS difference_low,
        mean_high(value, se, t) AS difference_high
    FROM clustered('figure') AS c
    JOIN mean AS m ON m.subject = c.subject
)
SELECT whose.*, * EXCLUDE (whose)
FROM bounded;
