-- grain: corpus x contrast x word, words with a delta but those of the contrast itself
-- The leans by which the report lists words. Where `plumbline why --top` asked about the words of a
-- corpus (more than 24 of them), they are its words, from `word_evidence`, with intervals over
-- documents or sources, which `clusters` names: in those the co-occurrences of one document don't
-- count as independent. Elsewhere they are those of `word_lean`, with intervals over co-occurrences
-- (`count`). A word without an interval has lean_bound_nats 0 where others have one.
CREATE OR REPLACE VIEW listed_lean AS
WITH surveyed AS (
    SELECT corpus, contrast FROM word_evidence GROUP BY ALL HAVING count(*) > 24
)
FROM (
    SELECT
        corpus, contrast, word, n_word, n_pair_f, n_pair_m, delta_nats, delta_low_nats,
        delta_high_nats,
        CASE
            WHEN delta_low_nats IS NULL THEN 0
            ELSE bound_nearer_zero(delta_nats, delta_low_nats, delta_high_nats)
        END AS lean_bound_nats,
        clusters
    FROM word_evidence SEMI JOIN surveyed USING (corpus, contrast)
    WHERE delta_nats IS NOT NULL
    UNION ALL
    SELECT
        corpus, contrast, word, n_word, n_pair_f, n_pair_m, delta_nats, delta_low_nats,
        delta_high_nats, lean_bound_nats,
        CASE WHEN delta_low_nats IS NOT NULL THEN 'count' END AS clusters
    FROM word_lean ANTI JOIN surveyed USING (corpus, contrast)
)
WHERE NOT list_contains(string_split(contrast, '/'), word);
