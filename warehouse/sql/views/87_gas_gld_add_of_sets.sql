-- grain: probe_set x model_key x word_list x instruction_key x topic, and the whole set with topic NULL
-- GLD and ADD over the prompts of a set and of each of its topics: means over prompts with 95%
-- intervals (`over_prompts`). n_undefined prompts have no GLD, since no gendered word has any
-- probability there. leaning is the signed mean: if it is near 0 and gld is large, a model leans to
-- different sides for different prompts. share_f and add_normalised_nats are means over the prompts
-- that have a gld, from probabilities that sum to 1 over the list's words.
CREATE OR REPLACE MACRO disclosure(smoothing := 0) AS TABLE
WITH prompt AS (
    SELECT * FROM disclosure_prompt(smoothing := smoothing)
),
member AS (
    SELECT * FROM prompt WHERE topic IS NOT NULL
    UNION ALL
    SELECT * REPLACE (NULL AS topic) FROM prompt
),
counted AS (
    SELECT
        probe_set, model_key, model, word_list, instruction_key, topic,
        count(*) AS n_prompts,
        count(*) - count(gld) AS n_undefined,
        avg(p_f) AS p_f, avg(p_m) AS p_m, avg(leaning) AS leaning, avg(share_f) AS share_f
    FROM member
    GROUP BY ALL
),
figure AS (
    SELECT
        {
            'probe_set': probe_set, 'model_key': model_key, 'word_list': word_list,
            'instruction_key': instruction_key, 'topic': topic
        } AS subject,
        probe_set, prompt_id, topic IS NOT NULL AS is_one_topic, false AS is_change,
        unnest(['gld', 'add_nats', 'add_normalised_nats']) AS measure,
        unnest([gld, add_nats, add_normalised_nats]) AS figure
    FROM member
),
wide AS (
    SELECT
        subject.*,
        any_value(value) FILTER (measure = 'gld') AS gld,
        any_value(low) FILTER (measure = 'gld') AS gld_low,
        any_value(high) FILTER (measure = 'gld') AS gld_high,
        any_value(value) FILTER (measure = 'add_nats') AS add_nats,
        any_value(low) FILTER (measure = 'add_nats') AS add_nats_low,
        any_value(high) FILTER (measure = 'add_nats') AS add_nats_high,
        any_value(value) FILTER (measure = 'add_normalised_nats') AS add_normalised_nats,
        any_value(low) FILTER (measure = 'add_normalised_nats') AS add_normalised_nats_low,
        any_value(high) FILTER (measure = 'add_normalised_nats') AS add_normalised_nats_high
    FROM over_prompts('figure')
    GROUP BY subject
)
SELECT c.*, w.* EXCLUDE (probe_set, model_key, word_list, instruction_key, topic)
FROM counted AS c
JOIN wide AS w
    ON w.probe_set = c.probe_set AND w.model_key = c.model_key AND w.word_list = c.word_list
    AND w.instruction_key = c.instruction_key AND w.topic IS NOT DISTINCT FROM c.topic;
