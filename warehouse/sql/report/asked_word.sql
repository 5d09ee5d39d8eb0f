-- grain: as explained_word, by the bound nearer 0 of their intervals; q is over this list of words
WITH explained AS (
    SELECT
        *,
        coalesce(bound_nearer_zero(NULL, delta_nats_low, delta_nats_high), 0) AS bound_nats,
        p * count(p) OVER of_list / row_number() OVER (of_list ORDER BY p, word) AS scaled_p
    FROM word_evidence SEMI JOIN word_copies USING (corpus, contrast, word)
    WINDOW of_list AS (PARTITION BY corpus, contrast)
)
SELECT *, CASE WHEN p IS NOT NULL THEN least(1, min(scaled_p) OVER (
    PARTITION BY corpus, contrast ORDER BY p DESC, word DESC
)) END AS q
FROM explained ORDER BY corpus, contrast, abs(bound_nats) DESC, word;
