-- grain: strategy x model_key x word_list x instruction_key x sampling_key (NULL without continuations)
-- GAS, GLD and ADD by the paper's strategies of section 2.2, with their sets pooled as in Figure 2
-- (for Figures 4 and 5 the page doesn't say): `naturally-sourced` is stsb and snli, `llm-generated` llm-1 and llm-2, `template-based` topics.
-- Only where all sets of a strategy were measured; each prompt counts alike. Means over prompts with
-- 95% intervals (`over_prompts`); smoothing is e of ADD.
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
prompt AS (
    SELECT
        d.probe_set, d.model_key, d.model, d.word_list, d.instruction_key, g.sampling_key,
        d.prompt_id, d.gld, d.add_nats, g.gas
    FROM disclosure_prompt(smoothing := smoothing) AS d
    LEFT JOIN gas_prompt AS g USING (probe_set, model_key, word_list, instruction_key, prompt_id)
),
figure AS (
    SELECT
        {
            'strategy': strategy, 'model_key': model_key, 'model': model, 'word_list': word_list,
            'instruction_key': instruction_key, 'sampling_key': sampling_key
        } AS subject,
        probe_set, prompt_id, n_sets, false AS is_one_topic, false AS is_change,
        unnest(['gas', 'gld', 'add_nats']) AS measure, unnest([gas, gld, add_nats]) AS figure
    FROM prompt
    JOIN pool USING (probe_set)
),
counted AS (
    SELECT subject, count(DISTINCT (probe_set, prompt_id)) AS n_prompts
    FROM figure
    GROUP BY subject
    HAVING count(DISTINCT probe_set) = max(n_sets)
)
SELECT
    unnest(c.subject), c.n_prompts,
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
GROUP BY c.subject, c.n_prompts;
