-- grain: probe_set x model_key x word_list x topic (NULL: the whole set) x sampling_key of greedy
-- continuations (NULL without any)
-- GLD, ADD and GAS side by side, of models without an instruction; smoothing is e of ADD.
WITH greedy AS (
    SELECT g.* EXCLUDE (model, instruction_key, n_prompts), s.max_new_tokens
    FROM gas AS g
    JOIN sampling AS s USING (sampling_key)
    WHERE s.method = 'greedy' AND s.instruction IS NULL
)
SELECT d.*, g.* EXCLUDE (probe_set, model_key, word_list, topic)
FROM disclosure(smoothing := $smoothing) AS d
LEFT JOIN greedy AS g
    ON g.probe_set = d.probe_set AND g.model_key = d.model_key AND g.word_list = d.word_list
    AND g.topic IS NOT DISTINCT FROM d.topic
WHERE d.instruction_key = 'none'
ORDER BY d.probe_set, d.model, d.model_key, d.word_list, g.max_new_tokens, g.sampling_key,
    d.topic NULLS FIRST;
