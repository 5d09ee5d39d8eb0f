-- grain: tuning x model_key x probe_set x word_list x instruction_key x sampling_key x measure
-- What an adapter changed, compared with its base prompt by prompt: gas for each sampling, and gld,
-- add_nats (smoothing 0) and p_gendered (p_f + p_m) with sampling_key NULL. Base and adapter were
-- measured with the same backend, dtype and other settings. difference is tuned minus base, a mean
-- over prompts that both have, with the 95% interval of `over_prompts`; verdict is `fell` or `rose`
-- if the interval excludes 0, otherwise `unclear`. on_training_set: the adapter was tuned on
-- prompts of this set, or chosen by some (`tuned_prompt`). on_training_list: it was tuned with
-- these words. A change goes beyond what tuning saw only if one of the two is false. A list also
-- counts as the tuned list if all its words are in that list, in whatever pairs. NULL if the tuned
-- list isn't in `attribute_pair`, which tuning alone doesn't write.
CREATE OR REPLACE VIEW tuning_effect AS
WITH matched AS (
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
listed AS (
    SELECT word_list, list(female) || list(male) AS words
    FROM attribute_pair
    GROUP BY ALL
),
base_and_tuned AS (
    SELECT DISTINCT base_key, model_key FROM matched
)
SELECT
    t.tuning, t.base_key, t.model_key, c.probe_set, c.word_list, c.instruction_key,
    c.sampling_key, c.measure,
    coalesce(p.n_tuned_on > 0, false) AS on_training_set,
    c.word_list = t.word_list
        OR list_has_all(seen.words, own.words) AS on_training_list,
    c.n_prompts, c.before_mean AS base_mean, c.after_mean AS tuned_mean, c.difference,
    c.difference_low, c.difference_high,
    CASE WHEN c.direction IN ('fell', 'rose') THEN c.direction ELSE 'unclear' END AS verdict
FROM matched AS t
JOIN disclosure_change(
    (SELECT list(base_key ORDER BY base_key, model_key) FROM base_and_tuned),
    (SELECT list(model_key ORDER BY base_key, model_key) FROM base_and_tuned)
) AS c ON c.key_before = t.base_key AND c.key_after = t.model_key
LEFT JOIN tuned_prompt AS p ON p.model_key = t.model_key AND p.probe_set = c.probe_set
LEFT JOIN listed AS own ON own.word_list = c.word_list
LEFT JOIN listed AS seen ON seen.word_list = t.word_list
WHERE c.topic IS NULL AND c.measure NOT IN ('gas_f_of_all', 'gas_m_of_all');
