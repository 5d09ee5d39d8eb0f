-- grain: tuning x model_key x probe_set x word_list x instruction_key x sampling_key x measure
-- What an adapter changed, with the base paired by prompt: gld, add_nats (smoothing 0), p_gendered
-- (p_f + p_m) with sampling_key NULL, and gas by sampling. Both are measured alike in all that
-- `model` holds. difference is tuned - base, a mean over prompts that both have, with Student's 95%
-- interval, NULL below two; verdict `fell` or `rose` where it leaves out 0, else `unclear`.
-- on_training_set and on_training_list tell what was tuned on: only figures where at least one is
-- false say whether a change holds for what tuning never saw. Lists of other names may share words.
CREATE OR REPLACE VIEW tuning_effect AS
WITH measured AS (
    UNPIVOT (
        SELECT
            probe_set, model_key, word_list, instruction_key, NULL::VARCHAR AS sampling_key,
            prompt_id,
            gld, add_nats, p_f + p_m AS p_gendered
        FROM disclosure_prompt()
    ) ON gld, add_nats, p_gendered INTO NAME measure VALUE figure
    UNION ALL
    SELECT
        probe_set, model_key, word_list, instruction_key, sampling_key, prompt_id, 'gas', gas
    FROM gas_prompt
    WHERE gas IS NOT NULL
),
matched AS (
    SELECT t.*, b.model_key AS base_key, a.model_key
    FROM tuning AS t
    JOIN model AS b ON b.model = t.base AND b.revision = t.base_revision AND b.adapter IS NULL
    JOIN model AS a
        ON a.adapter = t.adapter AND a.model = b.model AND a.revision = b.revision
        -- With an adapter the versions end with that of PEFT.
        AND a.backend = b.backend
        AND starts_with(a.backend_version || ', ', b.backend_version || ', ')
        AND a.dtype = b.dtype AND a.quantisation IS NOT DISTINCT FROM b.quantisation
        AND a.bos_policy = b.bos_policy AND a.bos_token_id = b.bos_token_id
        AND a.text_form = b.text_form
),
counted AS (
    SELECT
        t.tuning, t.base_key, t.model_key, a.probe_set, a.word_list, a.instruction_key,
        a.sampling_key, a.measure,
        list_contains(string_split(t.probe_sets, ', '), a.probe_set) AS on_training_set,
        a.word_list = t.word_list AS on_training_list,
        count(*) AS n_prompts,
        avg(b.figure) AS base_mean,
        avg(a.figure) AS tuned_mean,
        avg(a.figure - b.figure) AS difference,
        t975(count(*) - 1) * stddev_samp(a.figure - b.figure) / sqrt(count(*)) AS half
    FROM matched AS t
    JOIN measured AS a USING (model_key)
    JOIN measured AS b
        ON b.model_key = t.base_key AND b.probe_set = a.probe_set AND b.word_list = a.word_list
        AND b.instruction_key = a.instruction_key
        AND b.sampling_key IS NOT DISTINCT FROM a.sampling_key
        AND b.prompt_id = a.prompt_id AND b.measure = a.measure
    GROUP BY ALL
)
SELECT
    * EXCLUDE (half), difference - half AS low, difference + half AS high,
    CASE
        WHEN difference + half < 0 THEN 'fell'
        WHEN difference - half > 0 THEN 'rose'
        ELSE 'unclear'
    END AS verdict
FROM counted;
