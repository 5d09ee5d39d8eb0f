-- grain: probe_set x model_key x sampling_key x perturber x side x n-gram of 1 to 4 words
-- N-grams that a model writes more often about one person than about the other. The texts of
-- `compared_text` are all about the same person, so their names don't differ. N-grams in at least 5
-- texts have a row; a text counts once, however often it repeats the n-gram. log_odds_nats is the
-- log of the odds that a perturbed text (is_perturbed) contains it, divided by the odds that
-- another text does, with 0.5 added to each count. z is log_odds_nats over its standard error.
-- Among thousands of n-grams, some reach |z| > 3 by chance.
CREATE OR REPLACE VIEW ngram_log_odds AS
WITH worded AS (
    SELECT
        probe_set, model_key, sampling_key, perturber, side, is_perturbed, prompt_id, sample,
        words_of(text) AS words
    FROM compared_text
),
total AS (
    SELECT
        probe_set, model_key, sampling_key, perturber, side,
        count(*) FILTER (is_perturbed) AS n_perturbed,
        count(*) FILTER (NOT is_perturbed) AS n_other
    FROM worded
    GROUP BY ALL
),
-- Each n-gram of a text, once per text.
grams AS (
    SELECT
        * EXCLUDE (words),
        unnest(list_distinct(list_concat(
            words,
            list_transform(range(1, len(words)), lambda i: words[i] || ' ' || words[i + 1]),
            list_transform(
                range(1, len(words) - 1),
                lambda i: words[i] || ' ' || words[i + 1] || ' ' || words[i + 2]
            ),
            list_transform(
                range(1, len(words) - 2),
                lambda i:
                    words[i] || ' ' || words[i + 1] || ' ' || words[i + 2] || ' ' || words[i + 3]
            )
        ))) AS ngram
    FROM worded
),
counted AS (
    SELECT
        probe_set, model_key, sampling_key, perturber, side, ngram,
        len(ngram) - len(replace(ngram, ' ', '')) + 1 AS n_words,
        count(*) FILTER (is_perturbed) AS n_texts_perturbed,
        count(*) FILTER (NOT is_perturbed) AS n_texts_other
    FROM grams
    GROUP BY ALL
    HAVING count(*) >= 5
)
SELECT
    c.*, t.n_perturbed, t.n_other,
    ln((n_texts_perturbed + 0.5) / (n_perturbed - n_texts_perturbed + 0.5))
        - ln((n_texts_other + 0.5) / (n_other - n_texts_other + 0.5)) AS log_odds_nats,
    log_odds_nats / sqrt(
        1 / (n_texts_perturbed + 0.5) + 1 / (n_perturbed - n_texts_perturbed + 0.5)
        + 1 / (n_texts_other + 0.5) + 1 / (n_other - n_texts_other + 0.5)
    ) AS z
FROM counted AS c
JOIN total AS t USING (probe_set, model_key, sampling_key, perturber, side);
