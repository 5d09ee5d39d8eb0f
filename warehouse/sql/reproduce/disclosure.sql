-- grain: probe_set x model_key x word_list x instruction_key x sampling_key x method x metric
-- The figures of Tables 1-3, 9 and 10 of Dong et al., for each run in the warehouse: GAS, GLD and
-- ADD (log10 of the mean in nats), with the intervals of `over_prompts`. GAS (F), GAS (M) and Delta
-- are of the gendered continuations. method is `Original`, `Instruction`, or `Hyperparameter`, whose
-- GAS is that of the best decoding in a sweep. For adapters tuned here it is `Debias Tuning`, or
-- `w/o L_x` if a loss had weight 0. Further columns say how the run was made.
WITH printed AS (
    SELECT
        unnest(['stsb', 'snli', 'llm-1', 'llm-2', 'topics']) AS probe_set,
        unnest(['STS-B', 'SNLI', 'LLM (1)', 'LLM (2)', 'Template']) AS inputs
),
next_word AS (
    SELECT
        *,
        log10(nullif(add_nats, 0)) AS add_log10,
        CASE
            WHEN add_nats_low > 0 THEN log10(add_nats_low)
            WHEN add_nats_low = 0 THEN '-infinity'::DOUBLE
        END AS add_log10_low,
        log10(nullif(add_nats_high, 0)) AS add_log10_high
    FROM disclosure()
    WHERE topic IS NULL
),
swept AS (
    SELECT *
    FROM decoding_sweep
    WHERE is_best
    QUALIFY row_number() OVER (
        PARTITION BY probe_set, model_key, instruction_key, word_list, max_new_tokens, seed
        ORDER BY parameter, setting
    ) = 1
),
continued AS (
    SELECT
        g.probe_set, g.model_key, g.word_list, g.instruction_key, g.sampling_key,
        g.n_prompts, g.n_empty, g.gas, g.gas_low, g.gas_high,
        g.gas_f_of_gendered, g.gas_f_of_gendered_low, g.gas_f_of_gendered_high,
        g.gas_m_of_gendered, g.gas_m_of_gendered_low, g.gas_m_of_gendered_high,
        g.gas_delta, g.gas_delta_low, g.gas_delta_high,
        s.max_new_tokens, 'greedy' AS decoding, false AS is_swept
    FROM gas AS g
    JOIN sampling AS s USING (sampling_key)
    WHERE g.topic IS NULL AND s.method = 'greedy'
    UNION ALL BY NAME
    SELECT
        probe_set, model_key, word_list, instruction_key, sampling_key,
        n_prompts, n_empty, gas, gas_low, gas_high,
        max_new_tokens, parameter || ' ' || setting AS decoding, true AS is_swept
    FROM swept
),
loaded AS (
    SELECT
        m.*, t.rank, t.alpha, t.dropout, t.learning_rate, t.batch_prompts, t.n_steps, t.max_tokens,
        t.clip_norm, t.layers, t.n_prompts AS n_tuned_on, t.n_dev_prompts,
        array_to_string(list_sort(string_split(t.probe_sets, ', ')), ', ') AS tuned_on,
        array_to_string(list_sort(string_split(t.dev_sets, ', ')), ', ') AS dev_sets,
        CASE WHEN t.as_published THEN 'sums' WHEN t.tuning IS NOT NULL THEN 'means' END AS losses,
        CASE
            WHEN t.tuning IS NULL THEN NULL
            WHEN least(t.distance_weight, t.total_weight, t.difference_weight) > 0
                THEN 'Debias Tuning'
            ELSE concat(
                'w/o',
                CASE WHEN t.distance_weight = 0 THEN ' L_d' ELSE '' END,
                CASE WHEN t.total_weight = 0 THEN ' L_g' ELSE '' END,
                CASE WHEN t.difference_weight = 0 THEN ' L_l' ELSE '' END
            )
        END AS tuned_as
    FROM model AS m
    LEFT JOIN tuning AS t ON t.adapter = m.adapter
    WHERE m.adapter IS NULL OR t.tuning IS NOT NULL
)
SELECT
    p.inputs,
    CASE
        WHEN l.tuned_as IS NOT NULL THEN l.tuned_as
        WHEN c.is_swept THEN 'Hyperparameter'
        WHEN w.instruction_key = 'none' THEN 'Original'
        ELSE 'Instruction'
    END AS method,
    w.model, w.model_key,
    unnest(['GAS', 'GLD', 'ADD', 'GAS (F)', 'GAS (M)', 'Delta']) AS metric,
    unnest([
        c.gas, w.gld, w.add_log10, c.gas_f_of_gendered, c.gas_m_of_gendered, c.gas_delta
    ]) AS measured,
    unnest([
        c.gas_low, w.gld_low, w.add_log10_low,
        c.gas_f_of_gendered_low, c.gas_m_of_gendered_low, c.gas_delta_low
    ]) AS low,
    unnest([
        c.gas_high, w.gld_high, w.add_log10_high,
        c.gas_f_of_gendered_high, c.gas_m_of_gendered_high, c.gas_delta_high
    ]) AS high,
    w.probe_set, w.n_prompts, c.n_empty, w.word_list, c.decoding, c.max_new_tokens,
    i.instruction, i.form, l.dtype, l.quantisation, l.backend, l.revision, l.adapter,
    l.tuned_on, l.n_tuned_on, l.dev_sets, l.n_dev_prompts, l.losses, l.clip_norm,
    l.layers, l.rank, l.alpha, l.dropout, l.learning_rate, l.batch_prompts,
    l.n_steps, l.max_tokens
FROM next_word AS w
JOIN printed AS p USING (probe_set)
JOIN loaded AS l USING (model_key)
LEFT JOIN continued AS c USING (probe_set, model_key, word_list, instruction_key)
LEFT JOIN instruction AS i USING (instruction_key)
WHERE (w.instruction_key = 'none' OR l.adapter IS NULL)
    AND (NOT coalesce(c.is_swept, false) OR (w.instruction_key = 'none' AND l.adapter IS NULL))
ORDER BY w.model, w.model_key, w.word_list, c.max_new_tokens, i.instruction, i.form, c.decoding,
    p.inputs, method, metric;
