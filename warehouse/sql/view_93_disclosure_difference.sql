-- grain: probe_set x word_list x instruction_key x sampling_key x topic x measure; topic NULL is
-- the whole set
-- What became of disclosure from one model to another, such as a base and the same with an adapter,
-- e.g. `FROM disclosure_difference('KEY OF THE BASE', 'KEY WITH THE ADAPTER')`: gas, gas_f, gas_m
-- (of samplings that both have), gld, add_nats and p_gendered (p_f + p_m; these three have no
-- sampling_key). Means are over the n_prompts that both have, with Wilson's intervals for gas and
-- Student's for others. difference is after less before, prompt by prompt, with Student's 95%
-- interval; direction says whether it fell, rose or neither. n_tuned_on above 0: the second was, or
-- may have been, tuned on prompts of the set (tuned_prompt); NULL: nothing is known.
CREATE OR REPLACE MACRO disclosure_difference(before_key, after_key, smoothing := 0) AS TABLE
WITH measured AS (
    SELECT
        probe_set, model_key, word_list, instruction_key, sampling_key, prompt_id, topic,
        unnest(['gas', 'gas_f', 'gas_m']) AS measure,
        unnest([gas, gas_f, gas_m]) AS figure
    FROM gas_prompt
    WHERE model_key IN (before_key, after_key)
    UNION ALL
    SELECT
        probe_set, model_key, word_list, instruction_key, NULL AS sampling_key, prompt_id,
        topic,
        unnest(['gld', 'add_nats', 'p_gendered']) AS measure,
        unnest([gld, add_nats, p_f + p_m]) AS figure
    FROM disclosure_prompt(smoothing := smoothing)
    WHERE model_key IN (before_key, after_key)
),
paired AS (
    SELECT b.* EXCLUDE (model_key, figure), b.figure AS old, a.figure AS new
    FROM measured AS b
    JOIN measured AS a
        ON a.probe_set = b.probe_set AND a.word_list = b.word_list AND a.measure = b.measure
        AND a.instruction_key = b.instruction_key
        AND a.prompt_id = b.prompt_id AND a.sampling_key IS NOT DISTINCT FROM b.sampling_key
    WHERE b.model_key = before_key AND a.model_key = after_key
        AND b.figure IS NOT NULL AND a.figure IS NOT NULL
),
member AS (
    SELECT * FROM paired WHERE topic IS NOT NULL
    UNION ALL
    SELECT * REPLACE (NULL AS topic) FROM paired
),
counted AS (
    SELECT
        probe_set, word_list, instruction_key, sampling_key, topic, measure,
        count(*) AS n_prompts,
        avg(old) AS before_mean, avg(new) AS after_mean, avg(new - old) AS difference,
        student_half(old) AS half_old, student_half(new) AS half_new,
        student_half(new - old) AS half
    FROM member
    GROUP BY ALL
)
SELECT
    c.probe_set, word_list, instruction_key, sampling_key, topic, measure, c.n_prompts,
    before_mean,
    CASE WHEN measure IN ('gas', 'gas_f', 'gas_m') THEN wilson_low(before_mean, c.n_prompts)
        WHEN half_old IS NOT NULL THEN greatest(before_mean - half_old, 0) END AS before_low,
    CASE WHEN measure IN ('gas', 'gas_f', 'gas_m') THEN wilson_high(before_mean, c.n_prompts)
        ELSE before_mean + half_old END AS before_high,
    after_mean,
    CASE WHEN measure IN ('gas', 'gas_f', 'gas_m') THEN wilson_low(after_mean, c.n_prompts)
        WHEN half_new IS NOT NULL THEN greatest(after_mean - half_new, 0) END AS after_low,
    CASE WHEN measure IN ('gas', 'gas_f', 'gas_m') THEN wilson_high(after_mean, c.n_prompts)
        ELSE after_mean + half_new END AS after_high,
    difference,
    difference - half AS difference_low,
    difference + half AS difference_high,
    direction_of(difference - half, difference + half) AS direction,
    t.n_tuned_on
FROM counted AS c
LEFT JOIN tuned_prompt AS t ON t.probe_set = c.probe_set AND t.model_key = after_key;
