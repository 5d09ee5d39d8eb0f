-- grain: probe_set x model_key x word_list x topic (NULL: the whole set) x sampling_key of greedy
-- continuations (NULL without any)
-- GLD, ADD and GAS side by side, of models without an instruction; smoothing is e of ADD.
WITH greedy AS (
    SELECT g.*, s.max_new_tokens
    FROM gas AS g
    JOIN sampling AS s USING (sampling_key)
    WHERE s.method = 'greedy' AND s.instruction IS NULL
)
SELECT
    d.*, g.sampling_key, g.max_new_tokens, g.n_prompts AS n_continued, g.n_empty,
    g.gas, g.gas_low, g.gas_high, g.gas_f_of_all, g.gas_f_of_all_low, g.gas_f_of_all_high,
    g.gas_m_of_all, g.gas_m_of_all_low, g.gas_m_of_all_high, g.gas_both_of_all,
    g.n_gendered, g.gas_f_of_gendered, g.gas_f_of_gendered_low, g.gas_f_of_gendered_high,
    g.gas_m_of_gendered, g.gas_m_of_gendered_low, g.gas_m_of_gendered_high,
    g.gas_delta, g.gas_delta_low, g.gas_delta_high,
    row_number() OVER (
        PARTITION BY d.probe_set, d.model_key, d.topic
        ORDER BY d.word_list, g.max_new_tokens, g.sampling_key
    ) = 1 AS is_first
FROM disclosure(smoothing := $smoothing) AS d
LEFT JOIN greedy AS g
    ON g.probe_set = d.probe_set AND g.model_key = d.model_key AND g.word_list = d.word_list
    AND g.topic IS NOT DISTINCT FROM d.topic
WHERE d.instruction_key = 'none'
ORDER BY d.probe_set, d.model, d.model_key, d.word_list, g.max_new_tokens, g.sampling_key,
    d.topic NULLS FIRST;
