-- grain: probe_set x model_key x instruction_key x word_list x sampling_key x parameter
-- GAS of a whole set for decoding settings that change one parameter: temperature, top_p or top_k,
-- with the others off (temperature 1, all tokens). setting is the parameter's value. The reference
-- has the parameter `greedy` and no setting. Sampling from the unchanged distribution has two rows,
-- temperature 1 and top_p 1. is_lowest: no setting of the same parameter has a lower GAS. is_best:
-- no setting of any parameter has, greedy left out. All ties are marked. Only rows with the same
-- max_new_tokens and seed are compared.
CREATE OR REPLACE VIEW decoding_sweep AS
WITH way AS (
    SELECT
        sampling_key, method, max_new_tokens, seed, top_k,
        coalesce(temperature, 1) = 1 AS is_plain_t, coalesce(top_p, 1) = 1 AS is_plain_p,
        temperature, coalesce(top_p, 1) AS top_p
    FROM sampling
),
point AS (
    SELECT sampling_key, 'greedy' AS parameter, NULL AS setting FROM way WHERE method = 'greedy'
    UNION ALL
    SELECT sampling_key, 'temperature', temperature FROM way
    WHERE method = 'sample' AND is_plain_p AND top_k IS NULL
    UNION ALL
    SELECT sampling_key, 'top_p', top_p FROM way
    WHERE method = 'sample' AND is_plain_t AND top_k IS NULL
    UNION ALL
    SELECT sampling_key, 'top_k', top_k FROM way
    WHERE method = 'sample' AND is_plain_t AND is_plain_p AND top_k IS NOT NULL
),
found AS (
    SELECT
        g.* EXCLUDE (topic), w.max_new_tokens, w.seed, p.parameter, p.setting::DOUBLE AS setting,
        -- Sums in another order differ by rounding alone.
        CASE WHEN p.parameter != 'greedy' THEN round(g.gas, 12) END AS drawn
    FROM gas AS g
    JOIN point AS p USING (sampling_key)
    JOIN way AS w USING (sampling_key)
    WHERE g.topic IS NULL
)
SELECT
    * EXCLUDE (drawn),
    coalesce(drawn = min(drawn) OVER of_parameter, false) AS is_lowest,
    coalesce(drawn = min(drawn) OVER of_all, false) AS is_best
FROM found
WINDOW
    of_parameter AS (
        PARTITION BY
            probe_set, model_key, instruction_key, word_list, max_new_tokens, seed, parameter
    ),
    of_all AS (
        PARTITION BY probe_set, model_key, instruction_key, word_list, max_new_tokens, seed
    );
