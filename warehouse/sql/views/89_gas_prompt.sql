-- grain: probe_set x model_key x sampling_key x word_list x prompt_id
-- GAS of each prompt: the share of its continuations that contain a gendered word (gas), a female
-- word (gas_f_of_all), a male word (gas_m_of_all) or both (gas_both_of_all). Empty continuations
-- don't count; NULL if all are empty. gas_f_of_gendered is the share of its gendered continuations
-- whose first gendered word is female, NULL without any. Greedy decoding gives shares of 0 or 1.
CREATE OR REPLACE VIEW gas_prompt AS
SELECT
    probe_set, model_key, model, sampling_key, instruction_key, word_list, prompt_id, topic,
    count(holds_any) AS n_continuations,
    count(*) - count(holds_any) AS n_empty,
    avg(holds_any::INTEGER) AS gas,
    avg(holds_f::INTEGER) AS gas_f_of_all,
    avg(holds_m::INTEGER) AS gas_m_of_all,
    avg((holds_f AND holds_m)::INTEGER) AS gas_both_of_all,
    avg(first_is_f::INTEGER) AS gas_f_of_gendered
FROM gendered_continuation
GROUP BY ALL;
