-- grain: tuning x model_key x probe_set x word_list x sampling_key of greedy continuations x measure
-- What tuning changed in models without an instruction; sets and lists that tuning never saw come first.
SELECT e.*, s.max_new_tokens
FROM tuning_effect AS e
LEFT JOIN sampling AS s USING (sampling_key)
WHERE e.instruction_key = 'none' AND (e.sampling_key IS NULL OR s.method = 'greedy')
ORDER BY
    e.tuning, e.model_key, e.on_training_set AND e.on_training_list, e.probe_set, e.word_list,
    list_position(['gas', 'gld', 'add_nats', 'p_gendered'], e.measure), s.max_new_tokens;
