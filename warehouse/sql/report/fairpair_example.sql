-- grain: n-gram of the list x text that contains it
-- Texts of one set and side that contain n-grams: for each n-gram at most $most, from the group that
-- contains it more often, and from different prompts first.
WITH wanted AS (
    SELECT unnest($ngrams) AS ngram, unnest($of_perturbed) AS is_perturbed
),
worded AS MATERIALIZED (
    SELECT prompt_id, sample, is_perturbed, text, spaced_words(text) AS words
    FROM compared_text
    WHERE probe_set = $probe_set AND model_key = $model_key AND sampling_key = $sampling_key
        AND perturber = $perturber AND side = $side
)
SELECT w.ngram, s.prompt_id, s.sample, s.text
FROM wanted AS w
JOIN worded AS s ON s.is_perturbed = w.is_perturbed AND contains(s.words, spaced_words(w.ngram))
QUALIFY row_number() OVER (PARTITION BY w.ngram ORDER BY s.sample, s.prompt_id) <= $most
ORDER BY w.ngram, s.sample, s.prompt_id;
