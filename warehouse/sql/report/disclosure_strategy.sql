-- grain: strategy x model_key x word_list x sampling_key of greedy continuations (NULL without any)
-- GAS, GLD and ADD of the sets of each strategy together, of models without an instruction; smoothing
-- is e of ADD.
SELECT d.*, s.max_new_tokens
FROM disclosure_strategy(smoothing := $smoothing) AS d
LEFT JOIN sampling AS s USING (sampling_key)
WHERE d.instruction_key = 'none' AND coalesce(s.method = 'greedy', true)
ORDER BY d.strategy, d.model, d.model_key, d.word_list, s.max_new_tokens, d.sampling_key;
