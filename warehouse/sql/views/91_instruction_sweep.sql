-- grain: probe_set x model_key x word_list x measure x max_new_tokens x instruction_key
-- GAS (of greedy continuations), GLD and ADD of a whole set under each instruction beside those
-- without one: measure is gas, gld or add_nats (smoothing is its e), figure its mean over n_prompts
-- with a 95% interval (Wilson's for gas, Student's t otherwise). figure_without is that of the same
-- prompts without an instruction, change what the instruction adds, over the n_compared prompts
-- that have both; its interval is of paired prompts (t; for gas Bonett and Price's for shares).
-- max_new_tokens is NULL where nothing is continued, change under the instruction `none`.
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
counted AS (
    SELECT
        probe_set, model_key, model, word_list, measure, max_new_tokens, instruction_key,
        count(figure) AS n_prompts,
        count(*) - count(figure) AS n_undefined,
        avg(figure) AS figure,
        student_half(figure) AS half,
        count(change) AS n_compared,
        avg(other) FILTER (change IS NOT NULL) AS figure_without,
        avg(change) AS change,
        student_half(change) AS half_change,
        -- Bonett and Price: one more prompt that gained a gendered word, and one more that lost it.
        (count(*) FILTER (change > 0) + 1) / (count(change) + 2) AS gained,
        (count(*) FILTER (change < 0) + 1) / (count(change) + 2) AS lost,
        z975() * sqrt((gained + lost - (gained - lost) ** 2) / (count(change) + 2)) AS half_shares
    FROM beside
    GROUP BY ALL
),
changed AS (
    SELECT
        *,
        CASE
            WHEN change IS NULL THEN NULL
            WHEN measure = 'gas' THEN greatest(gained - lost - half_shares, -1)
            ELSE change - half_change
        END AS change_low,
        CASE
            WHEN change IS NULL THEN NULL
            WHEN measure = 'gas' THEN least(gained - lost + half_shares, 1)
            ELSE change + half_change
        END AS change_high
    FROM counted
)
SELECT
    c.probe_set, c.model_key, c.model, c.word_list, c.measure, c.max_new_tokens, c.instruction_key,
    i.instruction, i.form, c.n_prompts, c.n_undefined, c.figure,
    disclosure_low(c.measure, c.figure, c.n_prompts, c.half) AS figure_low,
    disclosure_high(c.measure, c.figure, c.n_prompts, c.half) AS figure_high,
    c.n_compared, c.figure_without, c.change, c.change_low, c.change_high
FROM changed AS c
LEFT JOIN instruction AS i USING (instruction_key);
