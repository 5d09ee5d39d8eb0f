-- grain: as view decoding_sweep, without an instruction
FROM decoding_sweep WHERE instruction_key = 'none'
ORDER BY probe_set, model, word_list, max_new_tokens, seed, parameter, setting;
