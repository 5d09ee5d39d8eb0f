-- grain: corpus_a x corpus_b x contrast x n_word_from
-- How far two corpora agree on which way words lean: Pearson's and Spearman's correlation of their
-- deltas with Fisher's z intervals (Bonett and Wright's for ranks), over the n_words that both have
-- and have at least min_pairs times with each side, e.g. `FROM corpus_agreement(min_pairs := 5)`;
-- unknown counts leave no word out. With `by_frequency := true` there is a row for words that occur
-- 1 to 9 times in the corpus where they are rarer, one for 10 to 99 and so on; n_word_from is the
-- first of these, else NULL. n_same words lean the same way in both, n_opposite the other way in the
-- other corpus. Of n_with_se words the interval of the difference is known, also of the n_one_sided
-- words that one corpus has near one side only and that aren't in n_words; n_different of them differ
-- clearly: their interval excludes 0, as at most one in twenty would by chance alone.
CREATE OR REPLACE MACRO corpus_agreement(min_pairs := 1, by_frequency := false) AS TABLE
WITH compared AS (
    SELECT
        *,
        difference_nats IS NOT NULL AS is_shared,
        CASE
            WHEN by_frequency AND n_word_least > 0
                THEN (10 ** floor(log10(n_word_least)))::BIGINT
        END AS n_word_from
    FROM word_difference
    WHERE coalesce(n_least, min_pairs) >= min_pairs OR difference_nats IS NULL
),
ranked AS (
    SELECT
        *,
        rank() OVER (of_pair ORDER BY delta_a_nats) + (count(*) OVER same_a - 1) / 2 AS rank_a,
        rank() OVER (of_pair ORDER BY delta_b_nats) + (count(*) OVER same_b - 1) / 2 AS rank_b
    FROM compared
    WINDOW
        of_pair AS (PARTITION BY corpus_a, corpus_b, contrast, n_word_from, is_shared),
        same_a AS (PARTITION BY corpus_a, corpus_b, contrast, n_word_from, is_shared, delta_a_nats),
        same_b AS (PARTITION BY corpus_a, corpus_b, contrast, n_word_from, is_shared, delta_b_nats)
),
correlated AS (
    SELECT
        corpus_a, corpus_b, contrast, n_word_from, count(*) FILTER (is_shared) AS n_words,
        CASE
            WHEN least(
                stddev_pop(delta_a_nats) FILTER (is_shared),
                stddev_pop(delta_b_nats) FILTER (is_shared)
            ) > 1e-9
                THEN greatest(-1, least(1,
                    corr(delta_a_nats, delta_b_nats ORDER BY word) FILTER (is_shared)
                ))
        END AS r,
        CASE
            WHEN least(
                stddev_pop(rank_a) FILTER (is_shared), stddev_pop(rank_b) FILTER (is_shared)
            ) > 0
                THEN greatest(-1, least(1,
                    corr(rank_a, rank_b ORDER BY word) FILTER (is_shared)
                ))
        END AS rho,
        count(*) FILTER (delta_a_nats * delta_b_nats > 0) AS n_same,
        count(*) FILTER (delta_a_nats * delta_b_nats < 0) AS n_opposite,
        count(difference_nats_low) AS n_with_se,
        count(difference_nats_low) FILTER (NOT is_shared) AS n_one_sided,
        count(*) FILTER (difference_nats_low > 0 OR difference_nats_high < 0) AS n_different
    FROM ranked
    GROUP BY ALL
)
SELECT
    corpus_a, corpus_b, contrast, n_word_from, n_words,
    r AS correlation,
    CASE WHEN is_enough(n_words) THEN fisher_bound(r, -z975() / sqrt(n_words - 3)) END AS correlation_low,
    CASE WHEN is_enough(n_words) THEN fisher_bound(r, z975() / sqrt(n_words - 3)) END AS correlation_high,
    rho AS rank_correlation,
    CASE
        WHEN is_enough(n_words)
            THEN fisher_bound(rho, -z975() * sqrt((1 + rho ** 2 / 2) / (n_words - 3)))
    END AS rank_correlation_low,
    CASE
        WHEN is_enough(n_words)
            THEN fisher_bound(rho, z975() * sqrt((1 + rho ** 2 / 2) / (n_words - 3)))
    END AS rank_correlation_high,
    n_same, n_opposite, n_with_se, n_one_sided, n_different
FROM correlated;
