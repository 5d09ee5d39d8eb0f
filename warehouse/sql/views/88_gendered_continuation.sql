-- grain: probe_set x model_key x sampling_key x word_list x prompt_id x sample
-- Whether a continuation contains a female and a male word of a list: whole words, any case, cut at
-- apostrophes and hyphens too (she's contains she). NULL if the continuation is only white space.
-- first_is_f: whether the first gendered word is a female one; NULL without any. Prompts that have
-- a counterpart, such as FairPair's, name a person and are left out.
CREATE OR REPLACE VIEW gendered_continuation AS
WITH listed AS (
    SELECT word_list, list(DISTINCT lower(female)) AS female, list(DISTINCT lower(male)) AS male
    FROM attribute_pair
    GROUP BY ALL
),
worded AS (
    SELECT
        c.probe_set, c.model_key, c.model, c.sampling_key, c.prompt_id, c.sample, p.topic,
        CASE
            WHEN s.instruction IS NULL THEN 'none' ELSE s.instruction_key
        END AS instruction_key,
        CASE
            WHEN regexp_matches(c.continuation, '\S')
                THEN regexp_extract_all(lower(c.continuation), '[\pL\pN]+')
        END AS words
    FROM continuation AS c
    JOIN probe_prompt AS p USING (probe_set, prompt_id)
    LEFT JOIN sampling AS s USING (sampling_key)
    WHERE c.side = 'original' AND p.perturbed_prompt IS NULL
)
SELECT
    s.probe_set, s.model_key, s.model, s.sampling_key, s.instruction_key, l.word_list,
    s.prompt_id, s.topic, s.sample,
    list_has_any(s.words, l.female) AS holds_f,
    list_has_any(s.words, l.male) AS holds_m,
    holds_f OR holds_m AS holds_any,
    list_contains(
        l.female,
        list_filter(
            s.words, lambda w: list_contains(l.female, w) OR list_contains(l.male, w)
        )[1]
    ) AS first_is_f
FROM worded AS s, listed AS l;
