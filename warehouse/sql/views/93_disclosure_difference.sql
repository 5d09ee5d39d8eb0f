-- grain: probe_set x word_list x instruction_key x sampling_key x topic x measure
-- How disclosure changes from one model to another, such as a base and the same with an adapter,
-- e.g. `FROM disclosure_difference('KEY OF THE BASE', 'KEY WITH THE ADAPTER')`; topic NULL is the
-- whole set. The measures are gas, gas_f_of_all, gas_m_of_all (of samplings that both have), gld,
-- add_nats and p_gendered (p_f + p_m; these three have no sampling_key). Means are over the
-- n_prompts that both have and difference is after minus before, prompt by prompt, with 95%
-- intervals over topics where the prompts have any, else over prompts (`over_prompts`); direction
-- says whether it fell, rose or neither. n_tuned_on above 0: the second was, or may have been,
-- tuned on prompts of the set (tuned_prompt); NULL: unknown.
CREATE OR REPLACE MACRO disclosure_difference(before_key, after_key, smoothing := 0) AS TABLE
SELECT c.* EXCLUDE (key_before, key_after), t.n_tuned_on
FROM disclosure_change([before_key], [after_key], smoothing := smoothing) AS c
LEFT JOIN tuned_prompt AS t ON t.probe_set = c.probe_set AND t.model_key = c.key_after;
