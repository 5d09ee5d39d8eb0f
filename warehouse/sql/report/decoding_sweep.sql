-- grain: as view decoding_sweep, without an instruction, of three settings or more
FROM decoding_sweep WHERE instruction_key = 'none'
QUALIFY count(DISTINCT sampling_key) OVER (PARTITION BY probe_set, model_key, word_list) > 2
ORDER BY probe_set, model, word_list, max_new_tokens, seed, parameter, setting;
