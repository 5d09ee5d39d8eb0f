-- grain: key_before x key_after x probe_set x word_list x instruction_key x sampling_key x topic x measure
-- How disclosure changes from each model in keys_before to the model at the same position in
-- keys_after. topic is NULL for the whole set. The measures are gas, gas_f_of_all and gas_m_of_all
-- for samplings that both have, and gld, add_nats and p_gendered (p_f + p_m) without sampling_key.
-- Means are over the n_prompts that both have, with 95% intervals (`over_prompts`); difference is
-- after minus before, prompt by prompt.
CREATE OR REPLACE MACRO disclosure_change(keys_before, keys_after, smoothing := 0) AS TABLE
WITH compared AS (
    SELECT unnest(keys_before) AS key_before, unnest(keys_after) AS key_after
),
measured AS (
    SELECT
        probe_set, model_key, word_list, instruction_key, sampling_key, prompt_id, topic,
        unnest(['gas', 'gas_f_of_all', 'gas_m_of_all']) AS measure,
        unnest([gas, gas_f_of_all, gas_m_of_all]) AS figure
    FROM gas_prompt
    WHERE list_contains(keys_before || keys_after, model_key)
    UNION ALL
    SELECT
        probe_set, model_key, word_list, instruction_key, NULL AS sampling_key, prompt_id,
        topic,
        unnest(['gld', 'add_nats', 'p_gendered']) AS measure,
        unnest([gld, add_nats, p_f + p_m]) AS figure
    FROM disclosure_prompt(smoothing := smoothing)
    WHERE list_contains(keys_before || keys_after, model_key)
),
paired AS (
    SELECT
        c.key_before, c.key_after,
        b.* EXCLUDE (model_key, figure), b.figure AS old, a.figure AS new
    FROM compared AS c
    JOIN measured AS b ON b.model_key = c.key_before
    JOIN measured AS a
        ON a.model_key = c.key_after
        AND a.probe_set = b.probe_set AND a.word_list = b.word_list AND a.measure = b.measure
        AND a.instruction_key = b.instruction_key
        AND a.prompt_id = b.prompt_id AND a.sampling_key IS NOT DISTINCT FROM b.sampling_key
    WHERE b.figure IS NOT NULL AND a.figure IS NOT NULL
),
member AS (
    SELECT * FROM paired WHERE topic IS NOT NULL
    UNION ALL
    SELECT * REPLACE (NULL AS topic) FROM paired
),
figure AS (
    SELECT
        {
            'key_before': key_before, 'key_after': key_after, 'probe_set': probe_set,
            'word_list': word_list, 'instruction_key': instruction_key,
            'sampling_key': sampling_key, 'topic': topic, 'measure': measure, 'part': part
        } AS subject,
        probe_set, prompt_id, topic IS NOT NULL AS is_one_topic, measure,
        part = 'difference' AS is_change, figure
    FROM (
        SELECT
            *, unnest(['before', 'after', 'difference']) AS part,
            unnest([old, new, new - old]) AS figure
        FROM member
    )
),
wide AS (
    SELECT
        subject.key_before, subject.key_after, subject.probe_set, subject.word_list,
        subject.instruction_key, subject.sampling_key, subject.topic, measure,
        any_value(n_figures) AS n_prompts,
        any_value(value) FILTER (subject.part = 'before') AS before_mean,
        any_value(low) FILTER (subject.part = 'before') AS before_mean_low,
        any_value(high) FILTER (subject.part = 'before') AS before_mean_high,
        any_value(value) FILTER (subject.part = 'after') AS after_mean,
        any_value(low) FILTER (subject.part = 'after') AS after_mean_low,
        any_value(high) FILTER (subject.part = 'after') AS after_mean_high,
        any_value(value) FILTER (is_change) AS difference,
        any_value(low) FILTER (is_change) AS difference_low,
        any_value(high) FILTER (is_change) AS difference_high
    FROM over_prompts('figure')
    GROUP BY ALL
)
SELECT *, direction_of(difference_low, difference_high) AS direction
FROM wide;
