-- grain: probe_set x model_key x word_list x measure x max_new_tokens x instruction_key
-- GAS (of greedy continuations), GLD and ADD of a whole set under each instruction, and without
-- one. measure is gas, gld or add_nats (smoothing is its e). figure is its mean over n_prompts with
-- a 95% interval (`over_prompts`). n_compared of these prompts were also measured without an
-- instruction: figure_without is that mean, and change what the instruction adds, compared prompt
-- by prompt. max_new_tokens is NULL for gld and add_nats, change for the instruction `none`.
CREATE OR REPLACE MACRO instruction_sweep(smoothing := 0) AS TABLE
WITH next_word AS (
    SELECT * FROM disclosure_prompt(smoothing := smoothing)
),
prompt AS (
    SELECT
        g.probe_set, g.model_key, g.model, g.word_list, g.instruction_key, g.prompt_id,
        'gas' AS measure, s.max_new_tokens, g.gas AS figure
    FROM gas_prompt AS g
    JOIN sampling AS s USING (sampling_key)
    WHERE s.method = 'greedy'
    UNION ALL
    SELECT
        probe_set, model_key, model, word_list, instruction_key, prompt_id,
        'gld', NULL, gld
    FROM next_word
    UNION ALL
    SELECT
        probe_set, model_key, model, word_list, instruction_key, prompt_id,
        'add_nats', NULL, add_nats
    FROM next_word
),
beside AS (
    SELECT p.*, o.figure AS other, p.figure - o.figure AS change
    FROM prompt AS p
    LEFT JOIN prompt AS o
        ON o.instruction_key = 'none' AND p.instruction_key != 'none'
        AND o.probe_set = p.probe_set AND o.model_key = p.model_key AND o.word_list = p.word_list
        AND o.measure = p.measure AND o.prompt_id = p.prompt_id
        AND o.max_new_tokens IS NOT DISTINCT FROM p.max_new_tokens
),
figure AS (
    SELECT
        {
            'probe_set': probe_set, 'model_key': model_key, 'model': model, 'word_list': word_list,
            'measure': measure, 'max_new_tokens': max_new_tokens, 'instruction_key': instruction_key
        } AS subject,
        probe_set, prompt_id, false AS is_one_topic, measure, unnest([false, true]) AS is_change,
        unnest([figure, change]) AS figure
    FROM beside
),
counted AS (
    SELECT
        probe_set, model_key, word_list, measure, max_new_tokens, instruction_key,
        count(*) - count(figure) AS n_undefined,
        avg(other) FILTER (change IS NOT NULL) AS figure_without
    FROM beside
    GROUP BY ALL
),
wide AS (
    SELECT
        subject.*,
        any_value(n_figures) FILTER (NOT is_change) AS n_prompts,
        any_value(value) FILTER (NOT is_change) AS figure,
        any_value(low) FILTER (NOT is_change) AS figure_low,
        any_value(high) FILTER (NOT is_change) AS figure_high,
        any_value(n_figures) FILTER (is_change) AS n_compared,
        any_value(value) FILTER (is_change) AS change,
        any_value(low) FILTER (is_change) AS change_low,
        any_value(high) FILTER (is_change) AS change_high
    FROM over_prompts('figure')
    GROUP BY subject
)
SELECT
    w.probe_set, w.model_key, w.model, w.word_list, w.measure, w.max_new_tokens, w.instruction_key,
    i.instruction, i.form, w.n_prompts, c.n_undefined, w.figure, w.figure_low, w.figure_high,
    w.n_compared, c.figure_without, w.change, w.change_low, w.change_high
FROM wide AS w
JOIN counted AS c
    ON c.probe_set = w.probe_set AND c.model_key = w.model_key AND c.word_list = w.word_list
    AND c.measure = w.measure AND c.instruction_key = w.instruction_key
    AND c.max_new_tokens IS NOT DISTINCT FROM w.max_new_tokens
LEFT JOIN instruction AS i ON i.instruction_key = w.instruction_key;
