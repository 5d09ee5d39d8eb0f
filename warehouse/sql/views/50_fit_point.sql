-- grain: subset x model_key x benchmark x groups x corpus x contrast x options x point
-- Every point that a line is fitted through, y against x, for the contrasts of `leaning_pair`.
--
-- words, measured delta  a model's mean log ratio of a word against the word's delta in a corpus
-- words, max_pmi         the mean log ratio of the pairs whose MaxPMI is a word's lean, against that
--                        lean; leaning_pair says which of these two subsets a benchmark has
-- words, planted delta   a word's mean log ratio against the planted delta, for models trained on
--                        that corpus, except for words that were chosen because they don't lean
-- words, measured on planted   a closed-world corpus: what was counted against what was planted
-- words, swapped on straight   a word's mean log ratio under the model of the swapped world against
--                              its mean under the model of the straight world; options name the
--                              model of the swapped world
--
-- x_error_nats is the standard error of x as a measure of the lean that the model read, and
-- error_over the sampling unit of that error (`over` of word_lean). The error is 0 (`exact`) for
-- planted deltas, and for deltas of the corpus that the model was trained on. Any other counted
-- corpus is taken as a sample of text of its kind, and the error is that of the word's delta. NULL
-- if the error is unknown, or if x isn't a lean that a model may follow.
CREATE OR REPLACE VIEW fit_point AS
WITH leaning AS (
    SELECT
        subset, model_key, model, benchmark, groups, corpus, contrast, word AS point,
        delta_nats AS x_nats, avg(log_ratio_nats ORDER BY pair_id) AS y_nats
    FROM leaning_pair
    GROUP BY ALL
)
SELECT
    l.subset, l.model_key, l.model, l.benchmark, l.groups, l.corpus, l.contrast, '{}' AS options,
    l.point, l.x_nats, l.y_nats,
    if(t.corpus IS NULL, e.delta_nats_se, 0) AS x_error_nats,
    CASE
        WHEN t.corpus IS NOT NULL THEN 'exact'
        WHEN e.delta_nats_se IS NOT NULL THEN e.over
    END AS error_over
FROM leaning AS l
LEFT JOIN word_lean AS e
    ON e.corpus = l.corpus AND e.contrast = l.contrast AND e.word = l.point
LEFT JOIN (SELECT DISTINCT model_key, corpus FROM trained_key) AS t
    ON t.model_key = l.model_key AND t.corpus = l.corpus
UNION ALL
SELECT
    'words, planted delta', p.model_key, p.model, p.benchmark, p.groups, w.corpus, '', '{}', p.word,
    w.planted_delta_nats, p.mean_log_ratio_nats, 0, 'exact'
FROM word_preference AS p
JOIN trained_key AS t USING (model_key)
JOIN planted_word AS w ON w.corpus = t.corpus AND w.word = p.word
WHERE (w.corpus, p.benchmark) NOT IN (SELECT corpus, benchmark FROM neutral_benchmark)
    AND (w.corpus, p.benchmark) NOT IN (FROM foreign_corpus) AND is_fitted('', p.groups)
UNION ALL
SELECT
    'words, measured on planted', '', '', '', '', w.corpus, d.contrast, '{}', w.word,
    w.planted_delta_nats, d.delta_nats, NULL, NULL
FROM planted_word AS w
JOIN word_delta AS d USING (corpus, word)
WHERE d.contrast IN (FROM main_contrast)
UNION ALL
SELECT
    'words, swapped on straight', a.model_key, a.model, a.benchmark, a.groups, v.corpus, '',
    '{"swapped_model": ' || to_json(b.model)::VARCHAR
        || ', "swapped_model_key": ' || to_json(b.model_key)::VARCHAR || '}',
    a.word, a.mean_log_ratio_nats, b.mean_log_ratio_nats, NULL, NULL
FROM word_preference AS a
JOIN trained_key AS s ON s.model_key = a.model_key
JOIN planted_word AS v ON v.corpus = s.corpus AND v.word = a.word AND v.world = 'straight'
JOIN word_preference AS b
    ON b.benchmark = a.benchmark AND b.groups = a.groups AND b.word = a.word
JOIN trained_key AS t ON t.model_key = b.model_key
JOIN planted_word AS w ON w.corpus = t.corpus AND w.word = b.word AND w.world = 'swapped';
