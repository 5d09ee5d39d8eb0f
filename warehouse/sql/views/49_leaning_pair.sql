-- grain: subset x model_key x benchmark x groups x corpus x contrast x pair_id
-- A pair's log ratio under a model, and the lean of its word in a corpus, for the main contrasts and
-- the contrast between the pair's own groups (`is_fitted`). The word is the one that the pair was
-- made for (subset `words, measured delta`). If a benchmark has no words, or they were chosen
-- because they don't lean, it is the word whose lean is the pair's MaxPMI (`words, max_pmi`). A
-- corpus in another language than the pairs has no rows.
CREATE OR REPLACE VIEW leaning_pair AS
WITH leaning AS (
    SELECT
        'words, measured delta' AS subset, p.model_key, p.model, p.benchmark, p.groups, d.corpus,
        d.contrast, p.pair_id, d.word, p.log_ratio_nats, d.delta_nats
    FROM scored_pair AS p
    JOIN word_delta AS d ON d.word = lower(p.word)
    WHERE (d.contrast = p.groups OR d.contrast IN (FROM main_contrast))
        AND (d.corpus, d.contrast, p.benchmark) NOT IN (FROM neutral_benchmark)
    UNION ALL
    SELECT
        'words, max_pmi', model_key, model, benchmark, groups, corpus, contrast, pair_id,
        max_pmi_word, log_ratio_nats, max_pmi_nats
    FROM scored_pair_association
    WHERE max_pmi_nats IS NOT NULL
        AND (
            benchmark NOT IN (SELECT benchmark FROM benchmark_pair WHERE word IS NOT NULL)
            OR (corpus, contrast, benchmark) IN (FROM neutral_benchmark)
        )
)
FROM leaning
WHERE (corpus, benchmark) NOT IN (FROM foreign_corpus) AND is_fitted(contrast, groups);
