-- grain: probe_set x model_key x sampling_key x word_list x topic, and the whole set with topic NULL
-- GAS, the gender attribute score, over the prompts of a set and of each of its topics: the mean of
-- the prompts' shares, with its female and male parts (gas = gas_f + gas_m - gas_both). Wilson's
-- 95% intervals are over topics where the prompts have any, else over prompts (`over_prompts`).
-- Prompts with only empty continuations don't count (n_empty).
CREATE OR REPLACE VIEW gas AS
WITH member AS (
    SELECT * FROM gas_prompt WHERE topic IS NOT NULL
    UNION ALL
    SELECT * REPLACE (NULL AS topic) FROM gas_prompt
),
figure AS (
    SELECT
        {
            'probe_set': probe_set, 'model_key': model_key, 'model': model,
            'sampling_key': sampling_key, 'instruction_key': instruction_key,
            'word_list': word_list, 'topic': topic
        } AS subject,
        probe_set, prompt_id, topic IS NOT NULL AS is_one_topic, false AS is_change,
        unnest(['gas', 'gas_f', 'gas_m']) AS measure, unnest([gas, gas_f, gas_m]) AS figure
    FROM member
),
counted AS (
    SELECT
        probe_set, model_key, sampling_key, word_list, topic,
        count(gas) AS n_prompts, count(*) - count(gas) AS n_empty, avg(gas_both) AS gas_both
    FROM member
    GROUP BY ALL
),
wide AS (
    SELECT
        subject.*,
        any_value(value) FILTER (measure = 'gas') AS gas,
        any_value(low) FILTER (measure = 'gas') AS gas_low,
        any_value(high) FILTER (measure = 'gas') AS gas_high,
        any_value(value) FILTER (measure = 'gas_f') AS gas_f,
        any_value(low) FILTER (measure = 'gas_f') AS gas_f_low,
        any_value(high) FILTER (measure = 'gas_f') AS gas_f_high,
        any_value(value) FILTER (measure = 'gas_m') AS gas_m,
        any_value(low) FILTER (measure = 'gas_m') AS gas_m_low,
        any_value(high) FILTER (measure = 'gas_m') AS gas_m_high
    FROM over_prompts('figure')
    GROUP BY subject
)
SELECT
    w.probe_set, w.model_key, model, w.sampling_key, instruction_key, w.word_list, w.topic,
    n_prompts, n_empty, gas, gas_low, gas_high, gas_f, gas_f_low, gas_f_high,
    gas_m, gas_m_low, gas_m_high, gas_both
FROM wide AS w
JOIN counted AS c
    ON c.probe_set = w.probe_set AND c.model_key = w.model_key
    AND c.sampling_key = w.sampling_key AND c.word_list = w.word_list
    AND c.topic IS NOT DISTINCT FROM w.topic;
