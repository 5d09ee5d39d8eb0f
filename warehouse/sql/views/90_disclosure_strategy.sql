-- grain: strategy x model_key x word_list x instruction_key x sampling_key
-- GAS, GLD and ADD for the three kinds of prompts in section 2.2 of Dong et al., with their sets
-- pooled as in Figure 2 (the paper doesn't say how Figures 4 and 5 pool them): `naturally-sourced`
-- is stsb and snli, `llm-generated` llm-1 and llm-2, `template-based` topics. A strategy has rows
-- only if all its sets were measured; sampling_key and gas are NULL unless all were continued in
-- the same way. All prompts have the same weight. 95% intervals are those of `over_prompts`;
-- smoothing is e of ADD.
CREATE OR REPLACE MACRO disclosure_strategy(smoothing := 0) AS TABLE
WITH pool AS (
    SELECT strategy, unnest(probe_sets) AS probe_set, len(probe_sets) AS n_sets
    FROM (
        VALUES
        ('naturally-sourced', ['stsb', 'snli']),
        ('llm-generated', ['llm-1', 'llm-2']),
        ('template-based', ['topics'])
    ) AS t (strategy, probe_sets)
),
-- Keys come before prompts, so that prompts without a continuation join the rows of the others.
continued AS (
    SELECT strategy, model_key, word_list, instruction_key, sampling_key
    FROM gas_prompt
    JOIN pool USING (probe_set)
    GROUP BY ALL
    HAVING count(DISTINCT probe_set) = max(n_sets)
),
figure AS (
    SELECT
        {
            'strategy': strategy, 'model_key': model_key, 'word_list': word_list,
            'instruction_key': instruction_key, 'sampling_key': sampling_key
        } AS subject,
        d.model, probe_set, prompt_id, n_sets, false AS is_one_topic, false AS is_change,
        unnest(['gas', 'gld', 'add_nats']) AS measure,
        unnest([g.gas, d.gld, d.add_nats]) AS figure
    FROM disclosure_prompt(smoothing := smoothing) AS d
    JOIN pool USING (probe_set)
    LEFT JOIN continued USING (strategy, model_key, word_list, instruction_key)
    LEFT JOIN gas_prompt AS g
        USING (probe_set, model_key, word_list, instruction_key, sampling_key, prompt_id)
),
counted AS (
    SELECT
        subject, min(model) AS model, count(DISTINCT (probe_set, prompt_id)) AS n_prompts
    FROM figure
    GROUP BY subject
    HAVING count(DISTINCT probe_set) = max(n_sets)
)
SELECT
    unnest(c.subject), c.model, c.n_prompts,
    any_value(value) FILTER (measure = 'gas') AS gas,
    any_value(low) FILTER (measure = 'gas') AS gas_low,
    any_value(high) FILTER (measure = 'gas') AS gas_high,
    any_value(value) FILTER (measure = 'gld') AS gld,
    any_value(low) FILTER (measure = 'gld') AS gld_low,
    any_value(high) FILTER (measure = 'gld') AS gld_high,
    any_value(value) FILTER (measure = 'add_nats') AS add_nats,
    any_value(low) FILTER (measure = 'add_nats') AS add_nats_low,
    any_value(high) FILTER (measure = 'add_nats') AS add_nats_high
FROM over_prompts('figure') AS o
JOIN counted AS c ON c.subject = o.subject
GROUP BY c.subject, c.model, c.n_prompts;
