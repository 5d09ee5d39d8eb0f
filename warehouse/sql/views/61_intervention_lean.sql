-- grain: study x kind x dose x window_start x window_end x seed x benchmark x groups x corpus x contrast x words x outcome
-- What the model of each training of an intervention does with a text's leans, those before the
-- text was changed. Outcome `slope`: the least-squares slope of its mean log ratio of a word on the
-- word's delta, where there are two deltas; `mean log ratio`: in nats, over words. `words` are all,
-- and in a study of which some trainings changed only sentences with some words, also `chosen` and
-- `other`. Of a dose of 0 there is one training for all kinds.
CREATE OR REPLACE VIEW intervention_lean AS
WITH arm AS (
    SELECT
        a.*, k.model_key,
        max(a.near) OVER (PARTITION BY a.study) AS chosen
    FROM intervention_arm AS a JOIN trained_key AS k USING (model)
),
point AS (
    SELECT
        a.study, a.kind, a.dose, a.window_start, a.window_end, a.seed,
        p.benchmark, p.groups, d.corpus, d.contrast, p.word,
        p.mean_log_ratio_nats, d.delta_nats,
        a.chosen <> '' AS is_aimed,
        list_contains(list_transform(string_split(a.chosen, ','), lambda w: lower(trim(w))), p.word)
            AS is_chosen
    FROM arm AS a
    JOIN word_preference AS p USING (model_key)
    JOIN word_delta AS d USING (word)
    WHERE d.contrast IN (FROM main_contrast)
        AND (d.corpus, d.contrast, p.benchmark) NOT IN (FROM neutral_benchmark)
        AND (d.corpus, p.benchmark) NOT IN (FROM foreign_corpus)
),
grouped AS (
    SELECT *, 'all' AS words FROM point
    UNION ALL
    SELECT *, if(is_chosen, 'chosen', 'other') FROM point WHERE is_aimed
),
lean AS (
    SELECT
        study, kind, dose, window_start, window_end, seed, benchmark, groups, corpus, contrast,
        words,
        count(*) AS n_words,
        if(
            min(delta_nats) < max(delta_nats),
            regr_slope(mean_log_ratio_nats, delta_nats ORDER BY word), NULL
        ) AS slope,
        avg(mean_log_ratio_nats ORDER BY word) AS "mean log ratio"
    FROM grouped
    GROUP BY ALL
)
UNPIVOT lean ON slope, "mean log ratio" INTO NAME outcome VALUE lean;
