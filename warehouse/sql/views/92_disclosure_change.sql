-- grain: both keys x probe_set x word_list x instruction_key x sampling_key x topic x measure
-- How disclosure changes from each model of a list of keys to the model at the same position of
-- another list, for disclosure_difference and tuning_effect. topic NULL is the whole set. The
-- measures are gas, gas_f, gas_m (of samplings that both have), gld, add_nats and p_gendered (p_f +
-- p_m; these three have no sampling_key). Means are over the n_prompts that both have, with
-- Wilson's intervals for gas and Student's for others; difference is after minus before, prompt by
-- prompt.
CREATE OR REPLACE MACRO disclosure_change(keys_before, keys_after, smoothing := 0) AS TABLE
WITH compared AS (
    SELECT unnest(keys_before) AS key_before, unnest(keys_after) AS key_after
),
measured AS (
    SELECT
        probe_set, model_key, word_list, instruction_key, sampling_key, prompt_id, topic,
        unnest(['gas', 'gas_f', 'gas_m']) AS measure,
        unnest([gas, gas_f, gas_m]) AS figure
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
counted AS (
    SELECT
        key_before, key_after, probe_set, word_list, instruction_key, sampling_key, topic, measure,
        count(*) AS n_prompts,
        avg(old) AS before_mean, avg(new) AS after_mean, avg(new - old) AS difference,
        student_half(old) AS half_old, student_half(new) AS half_new,
        student_half(new - old) AS half
    FROM member
    GROUP BY ALL
)
SELECT
    key_before, key_after, probe_set, word_list, instruction_key, sampling_key, topic, measure,
    n_prompts,
    before_mean,
    disclosure_low(measure, before_mean, n_prompts, half_old) AS before_low,
    disclosure_high(measure, before_mean, n_prompts, half_old) AS before_high,
    after_mean,
    disclosure_low(measure, after_mean, n_prompts, half_new) AS after_low,
    disclosure_high(measure, after_mean, n_prompts, half_new) AS after_high,
    difference,
    difference - half AS difference_low,
    difference + half AS difference_high,
    direction_of(difference - half, difference + half) AS direction
FROM counted;
