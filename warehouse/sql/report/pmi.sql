-- grain: corpus x contrast x bin of 0.1 nats of PMI with the first x with the second word
-- The joint distribution of both PMI over words; a bin is NULL for words that co-occur with that
-- word fewer than $min_pairs times, so sums over the other bin are the marginal distributions.
WITH enough AS (
    SELECT
        corpus, contrast,
        CASE WHEN n_pair_f >= $min_pairs THEN floor(pmi_f_nats / 0.1)::BIGINT END AS bin_f,
        CASE WHEN n_pair_m >= $min_pairs THEN floor(pmi_m_nats / 0.1)::BIGINT END AS bin_m
    FROM word_pmi SEMI JOIN shown_contrast USING (corpus, contrast)
)
SELECT corpus, contrast, bin_f, bin_m, count(*) AS n_words
FROM enough
WHERE bin_f IS NOT NULL OR bin_m IS NOT NULL
GROUP BY ALL
ORDER BY ALL;
