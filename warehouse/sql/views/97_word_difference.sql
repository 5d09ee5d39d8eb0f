-- grain: corpus_a x corpus_b x contrast x word, words of `word_lean` in both; corpus_a comes first
-- How the lean of a word differs between two corpora. difference_nats is the lean in corpus_b minus
-- that in corpus_a; NULL where one has the word near one side only. Its 95% interval combines those
-- of the leans as if the texts were independent: their ends' distances from the leans add up in
-- squares (Donner and Zou 2012, MOVER), and without a lean the outer ends are taken; NULL where an
-- interval is unknown. difference_bound_nats is the bound of the interval nearer 0, like
-- lean_bound_nats in `word_lean`. n_least is the smallest of the four co-occurrence counts, NULL
-- where a corpus was imported without its counts; n_word_least is how often the word occurs in the
-- corpus where it is rarer.
CREATE OR REPLACE VIEW word_difference AS
WITH paired AS (
    SELECT
        a.corpus AS corpus_a, b.corpus AS corpus_b, a.contrast, a.word,
        a.delta_nats AS delta_a_nats, b.delta_nats AS delta_b_nats,
        a.lean_nats AS lean_a_nats, a.lean_nats_low AS lean_a_nats_low,
        a.lean_nats_high AS lean_a_nats_high,
        b.lean_nats AS lean_b_nats, b.lean_nats_low AS lean_b_nats_low,
        b.lean_nats_high AS lean_b_nats_high,
        b.lean_nats - a.lean_nats AS difference_nats,
        coalesce(
            difference_nats
            - sqrt((b.lean_nats - b.lean_nats_low) ** 2 + (a.lean_nats_high - a.lean_nats) ** 2),
            b.lean_nats_low - a.lean_nats_high
        ) AS difference_nats_low,
        coalesce(
            difference_nats
            + sqrt((b.lean_nats_high - b.lean_nats) ** 2 + (a.lean_nats - a.lean_nats_low) ** 2),
            b.lean_nats_high - a.lean_nats_low
        ) AS difference_nats_high,
        least(a.n_pair_f, a.n_pair_m, b.n_pair_f, b.n_pair_m) AS n_least,
        least(in_a.n_word, in_b.n_word) AS n_word_least
    FROM word_lean AS a
    JOIN word_lean AS b
        ON b.contrast = a.contrast AND b.word = a.word AND b.corpus > a.corpus
    LEFT JOIN word_count AS in_a ON in_a.corpus = a.corpus AND in_a.word = a.word
    LEFT JOIN word_count AS in_b ON in_b.corpus = b.corpus AND in_b.word = b.word
)
SELECT
    *,
    CASE
        WHEN difference_nats_low IS NULL AND contrast LIKE '%-by-word' THEN 0
        ELSE bound_nearer_zero(difference_nats, difference_nats_low, difference_nats_high)
    END AS difference_bound_nats
FROM paired;
