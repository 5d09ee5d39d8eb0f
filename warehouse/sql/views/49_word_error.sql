-- grain: corpus x contrast x word, words with a delta
-- How uncertain a word's delta is as the lean in text of the same kind: the standard error over
-- documents or sources where `why` has looked the word up (`error_over` says which), else that from
-- the counts (`count`), a lower bound, since co-occurrences of one document are alike. NULL without.
CREATE OR REPLACE VIEW word_error AS
SELECT
    d.corpus, d.contrast, d.word, d.delta_nats,
    coalesce(e.delta_nats_se, d.delta_nats_se) AS error_nats,
    CASE
        WHEN e.delta_nats_se IS NOT NULL THEN e.clusters
        WHEN d.delta_nats_se IS NOT NULL THEN 'count'
    END AS error_over
FROM word_delta AS d
LEFT JOIN word_evidence AS e
    ON e.corpus = d.corpus AND e.contrast = d.contrast AND e.word = d.word;
