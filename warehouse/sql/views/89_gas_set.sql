-- grain: probe_set x model_key x sampling_key x word_list x topic, and the whole set with topic NULL
-- GAS, the gender attribute score, over the prompts of a set and of each of its topics: means of
-- the prompts' shares (`gas_prompt`), where gas = gas_f_of_all + gas_m_of_all - gas_both_of_all.
-- gas_f_of_gendered and gas_m_of_gendered are GAS (F) and GAS (M) in Table 10 of Dong et al.: the
-- shares of gendered continuations whose first gendered word is female or male. They are means over
-- the n_gendered prompts that have gendered continuations, and sum to 1; gas_delta is the absolute
-- difference. 95% intervals are those of `over_prompts`, Wilson's for shares. The interval of
-- gas_delta follows from that of gas_f_of_gendered. n_empty prompts have only empty continuations.
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
        unnest(['gas', 'gas_f_of_all', 'gas_m_of_all', 'gas_f_of_gendered']) AS measure,
        unnest([gas, gas_f_of_all, gas_m_of_all, gas_f_of_gendered]) AS figure
    FROM member
),
counted AS (
    SELECT
        probe_set, model_key, sampling_key, word_list, topic,
        count(gas) AS n_prompts, count(*) - count(gas) AS n_empty,
        count(gas_f_of_gendered) AS n_gendered, avg(gas_both_of_all) AS gas_both_of_all
    FROM member
    GROUP BY ALL
),
wide AS (
    SELECT
        subject.*,
        any_value(value) FILTER (measure = 'gas') AS gas,
        any_value(low) FILTER (measure = 'gas') AS gas_low,
        any_value(high) FILTER (measure = 'gas') AS gas_high,
        any_value(value) FILTER (measure = 'gas_f_of_all') AS gas_f_of_all,
        any_value(low) FILTER (measure = 'gas_f_of_all') AS gas_f_of_all_low,
        any_value(high) FILTER (measure = 'gas_f_of_all') AS gas_f_of_all_high,
        any_value(value) FILTER (measure = 'gas_m_of_all') AS gas_m_of_all,
        any_value(low) FILTER (measure = 'gas_m_of_all') AS gas_m_of_all_low,
        any_value(high) FILTER (measure = 'gas_m_of_all') AS gas_m_of_all_high,
        any_value(value) FILTER (measure = 'gas_f_of_gendered') AS gas_f_of_gendered,
        any_value(low) FILTER (measure = 'gas_f_of_gendered') AS gas_f_of_gendered_low,
        any_value(high) FILTER (measure = 'gas_f_of_gendered') AS gas_f_of_gendered_high
    FROM over_prompts('figure')
    GROUP BY subject
)
SELECT
    w.probe_set, w.model_key, model, w.sampling_key, instruction_key, w.word_list, w.topic,
    n_prompts, n_empty, gas, gas_low, gas_high,
    gas_f_of_all, gas_f_of_all_low, gas_f_of_all_high,
    gas_m_of_all, gas_m_of_all_low, gas_m_of_all_high, gas_both_of_all, n_gendered,
    gas_f_of_gendered, gas_f_of_gendered_low, gas_f_of_gendered_high,
    1 - gas_f_of_gendered AS gas_m_of_gendered,
    1 - gas_f_of_gendered_high AS gas_m_of_gendered_low,
    1 - gas_f_of_gendered_low AS gas_m_of_gendered_high,
    abs(2 * gas_f_of_gendered - 1) AS gas_delta,
    CASE
        WHEN gas_f_of_gendered_low IS NOT NULL
            THEN greatest(2 * gas_f_of_gendered_low - 1, 1 - 2 * gas_f_of_gendered_high, 0)
    END AS gas_delta_low,
    greatest(1 - 2 * gas_f_of_gendered_low, 2 * gas_f_of_gendered_high - 1) AS gas_delta_high
FROM wide AS w
JOIN counted AS c
    ON c.probe_set = w.probe_set AND c.model_key = w.model_key
    AND c.sampling_key = w.sampling_key AND c.word_list = w.word_list
    AND c.topic IS NOT DISTINCT FROM w.topic;
