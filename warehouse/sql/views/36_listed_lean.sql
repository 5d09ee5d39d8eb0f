-- grain: corpus x contrast x word, words with a lean or a bound but those of the contrast itself
-- The leans by which the report lists words. Where `plumbline why --top` asked about the words of a
-- corpus (more than 24 of them), they are its words, from `word_evidence`, with intervals over
-- documents or sources, which `clusters` names: in those the co-occurrences of one document don't
-- count as independent. A word that was asked about by name (it has rows in `word_copies`) is among
-- them only if it is as frequent: a list that somebody picked is no ranking of a text's words.
-- Elsewhere they are those of `word_lean`, with intervals over co-occurrences
-- (`count`). A word without an interval has lean_bound_nats 0 where others have one. q is p corrected
-- for all words of the list (Benjamini and Hochberg). is_one_sided: only one side has the word
-- nearby. chance_clear is how likely the interval leaves out 0 if the word doesn't lean.
CREATE OR REPLACE VIEW listed_lean AS
WITH surveyed AS (
    SELECT corpus, contrast, last_rank
    FROM word_evidence
    JOIN (
        SELECT corpus, contrast, max(frequency_rank) AS last_rank
        FROM word_evidence ANTI JOIN word_copies USING (corpus, contrast, word)
        WHERE n_pair_f + n_pair_m > 0 AND NOT contains(word, ' ')
        GROUP BY ALL
    ) USING (corpus, contrast)
    WHERE n_pair_f + n_pair_m > 0 AND NOT contains(word, ' ') AND frequency_rank <= last_rank
    GROUP BY ALL
    HAVING count(*) > 24
),
asked AS (
    SELECT
        corpus, contrast, word, n_word, n_pair_f, n_pair_m, delta_nats AS lean_nats,
        delta_nats_low AS lean_nats_low, delta_nats_high AS lean_nats_high,
        CASE
            WHEN delta_nats_low IS NULL THEN 0
            ELSE bound_nearer_zero(delta_nats, delta_nats_low, delta_nats_high)
        END AS lean_bound_nats,
        p,
        p * count(p) OVER of_text / row_number() OVER (of_text ORDER BY p, word) AS p_scaled,
        0.05 AS chance_clear, clusters
    FROM word_evidence JOIN surveyed USING (corpus, contrast)
    WHERE coalesce(delta_nats, delta_nats_low) IS NOT NULL
        AND frequency_rank <= last_rank AND NOT contains(word, ' ')
        AND NOT list_contains(string_split(contrast, '/'), word)
    WINDOW of_text AS (PARTITION BY corpus, contrast)
)
SELECT *, least(n_pair_f, n_pair_m) = 0 AS is_one_sided
FROM (
    SELECT
        * EXCLUDE p_scaled,
        CASE WHEN p IS NOT NULL THEN least(1, min(p_scaled) OVER (
            PARTITION BY corpus, contrast ORDER BY p DESC, word DESC
        )) END AS q
    FROM asked
    UNION ALL BY NAME
    SELECT
        corpus, contrast, word, n_word, n_pair_f, n_pair_m, lean_nats, lean_nats_low,
        lean_nats_high, lean_bound_nats, p, q, coalesce(chance_clear, 0.05) AS chance_clear,
        CASE WHEN lean_nats_low IS NOT NULL THEN 'count' END AS clusters
    FROM word_lean ANTI JOIN surveyed USING (corpus, contrast)
    WHERE NOT list_contains(string_split(contrast, '/'), word)
);
