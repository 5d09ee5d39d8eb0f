-- grain: as instruction_sweep(), where a set was measured with an instruction
FROM instruction_sweep()
QUALIFY bool_or(instruction_key <> 'none') OVER (PARTITION BY probe_set, model_key, word_list)
ORDER BY probe_set, model, word_list, max_new_tokens, instruction_key, measure;
