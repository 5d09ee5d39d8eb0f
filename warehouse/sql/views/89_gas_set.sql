-- grain: probe_set x model_key x sampling_key x word_list x topic, and the whole set with topic NULL
-- GAS, the gender attribute score, over the prompts of a set and of each of its topics: the mean of
-- the prompts' shares, with its female and male parts (gas = gas_f + gas_m - gas_both). Wilson's
-- 95% intervals have the number of prompts for n: exact with one continuation per prompt, too wide
-- rather than too narrow with several. Prompts with only empty continuations don't count (n_empty).
CREATE OR REPLACE VIEW gas AS
WITH member AS (
    SELECT * FROM gas_prompt WHERE topic IS NOT NULL
    UNION ALL
    SELECT * REPLACE (NULL AS topic) FROM gas_prompt
),
counted AS (
    SELECT
        probe_set, model_key, model, sampling_key, instruction_key, word_list, topic,
        count(gas) AS n_prompts,
        count(*) - count(gas) AS n_empty,
        avg(gas) AS gas, avg(gas_f) AS gas_f, avg(gas_m) AS gas_m, avg(gas_both) AS gas_both
    FROM member
    GROUP BY ALL
)
SELECT
    probe_set, model_key, model, sampling_key, instruction_key, word_list, topic,
    n_prompts, n_empty,
    gas, wilson_low(gas, n_prompts) AS gas_low, wilson_high(gas, n_prompts) AS gas_high,
    gas_f, wilson_low(gas_f, n_prompts) AS gas_f_low, wilson_high(gas_f, n_prompts) AS gas_f_high,
    gas_m, wilson_low(gas_m, n_prompts) AS gas_m_low, wilson_high(gas_m, n_prompts) AS gas_m_high,
    gas_both
FROM counted;
