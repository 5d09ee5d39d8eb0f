-- grain: corpus_a x corpus_b x contrast x n_word_from
-- How far two corpora agree on which way words lean: Pearson's and Spearman's correlation of their
-- deltas with Fisher's z intervals (Bonett and Wright's for ranks). n_words words have a delta in
-- both corpora, and in each at least min_pairs co-occurrences with either side, e.g. `FROM
-- corpus_agreement(min_pairs := 5)`; words with unknown counts are included. With `by_frequency :=
-- true`, words are split by how often they occur in the corpus where they are rarer: 1 to 9 times,
-- 10 to 99 and so on. n_word_from is the start of that range, else NULL. n_same words lean the same
-- way in both corpora, n_opposite in opposite ways.
CREATE OR REPLACE MACRO corpus_agreement(min_pairs := 1, by_frequency := false) AS TABLE
WITH compared AS (
    SELECT
        a.corpus AS corpus_a, b.corpus AS corpus_b, a.contrast, a.word,
        a.delta_nats AS delta_a_nats, b.delta_nats AS delta_b_nats,
        CASE
            WHEN by_frequency AND least(in_a.n_word, in_b.n_word) > 0
                THEN (10 ** floor(log10(least(in_a.n_word, in_b.n_word))))::BIGINT
        END AS n_word_from
    FROM word_delta AS a
    JOIN word_delta AS b
        ON b.contrast = a.contrast AND b.word = a.word AND b.corpus > a.corpus
    LEFT JOIN word_count AS in_a ON in_a.corpus = a.corpus AND in_a.word = a.word
    LEFT JOIN word_count AS in_b ON in_b.corpus = b.corpus AND in_b.word = b.word
    WHERE coalesce(least(a.n_pair_f, a.n_pair_m, b.n_pair_f, b.n_pair_m), min_pairs) >= min_pairs
),
ranked AS (
    SELECT
        *,
        rank() OVER (of_pair ORDER BY delta_a_nats) + (count(*) OVER same_a - 1) / 2 AS rank_a,
        rank() OVER (of_pair ORDER BY delta_b_nats) + (count(*) OVER same_b - 1) / 2 AS rank_b
    FROM compared
    WINDOW
        of_pair AS (PARTITION BY corpus_a, corpus_b, contrast, n_word_from),
        same_a AS (PARTITION BY corpus_a, corpus_b, contrast, n_word_from, delta_a_nats),
        same_b AS (PARTITION BY corpus_a, corpus_b, contrast, n_word_from, delta_b_nats)
),
correlated AS (
    SELECT
        corpus_a, corpus_b, contrast, n_word_from, count(*) AS n_words,
        CASE WHEN least(stddev_pop(delta_a_nats), stddev_pop(delta_b_nats)) > 1e-9
            THEN greatest(-1, least(1, corr(delta_a_nats, delta_b_nats ORDER BY word)))
        END AS r,
        CASE WHEN least(stddev_pop(rank_a), stddev_pop(rank_b)) > 0
            THEN greatest(-1, least(1, corr(rank_a, rank_b ORDER BY word)))
        END AS rho,
        count(*) FILTER (delta_a_nats * delta_b_nats > 0) AS n_same,
        count(*) FILTER (delta_a_nats * delta_b_nats < 0) AS n_opposite
    FROM ranked
    GROUP BY ALL
)
SELECT
    corpus_a, corpus_b, contrast, n_word_from, n_words, r AS correlation,
    if(is_enough(n_words), fisher_bound(r, -z975() / sqrt(n_words - 3)), NULL) AS correlation_low,
    if(is_enough(n_words), fisher_bound(r, z975() / sqrt(n_words - 3)), NULL) AS correlation_high,
    rho AS rank_correlation,
    CASE WHEN is_enough(n_words)
        THEN fisher_bound(rho, -z975() * sqrt((1 + rho ** 2 / 2) / (n_words - 3)))
    END AS rank_correlation_low,
    CASE WHEN is_enough(n_words)
        THEN fisher_bound(rho, z975() * sqrt((1 + rho ** 2 / 2) / (n_words - 3)))
    END AS rank_correlation_high,
    n_same, n_opposite
FROM correlated;
