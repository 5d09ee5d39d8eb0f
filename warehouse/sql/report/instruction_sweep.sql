-- grain: as instruction_sweep()
FROM instruction_sweep()
ORDER BY probe_set, model, word_list, max_new_tokens, instruction_key, measure;
