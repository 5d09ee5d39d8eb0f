-- grain: corpus x contrast x span x end_step x word, words with both counts in the span
-- Variance over mean of a word's co-occurrences with a target, see `jobs/association/measures.py`.
CREATE OR REPLACE MACRO co_occurrence_dispersion(of_itself, of_target, by_rule, of_width) AS
    CASE WHEN by_rule = 'windows' THEN (2 * of_width - 1) / 3
    ELSE 1 + (2 * of_width - 3) / (of_width - 1) * of_itself / of_target END;

-- Lean of words in the text that a training had read at a step, for contrasts that are a pair of
-- words. `span`: `so far` is all text up to the end of a block of steps, `block` that of the block
-- alone. As in `word_delta`, delta is PMI with the female minus PMI with the male word, from the
-- span's counts (the word's own count and the totals cancel), and its error is that of the counts.
CREATE OR REPLACE VIEW step_delta AS
WITH pair AS (
    SELECT DISTINCT corpus, concat_ws('/', word_a, word_b) AS contrast, word_a, word_b
    FROM word_list WHERE word_a IS NOT NULL AND word_b IS NOT NULL
),
near AS (
    SELECT
        corpus, c.contrast, p.word, p.end_step,
        coalesce(sum(p.n_pair) FILTER (p.target = c.word_a), 0)::BIGINT AS n_pair_f,
        coalesce(sum(p.n_pair) FILTER (p.target = c.word_b), 0)::BIGINT AS n_pair_m
    FROM step_pair_count AS p JOIN pair AS c USING (corpus)
    WHERE p.target IN (c.word_a, c.word_b)
    GROUP BY ALL
),
-- Every block, also those in which a word stands near neither.
dense AS (
    SELECT
        corpus, k.contrast, b.end_step, k.word,
        coalesce(near.n_pair_f, 0) AS n_pair_f, coalesce(near.n_pair_m, 0) AS n_pair_m
    FROM (
        SELECT corpus, contrast, word FROM near
        GROUP BY ALL HAVING sum(n_pair_f) > 0 AND sum(n_pair_m) > 0
    ) AS k
    JOIN (SELECT DISTINCT corpus, end_step FROM step_word_count) AS b USING (corpus)
    LEFT JOIN near USING (corpus, contrast, word, end_step)
),
-- The words of the contrast themselves: how often, and how often each near another of itself.
of_pair AS (
    SELECT
        corpus, c.contrast, w.end_step,
        coalesce(sum(w.n_word) FILTER (w.word = c.word_a), 0)::BIGINT AS n_f,
        coalesce(sum(w.n_word) FILTER (w.word = c.word_b), 0)::BIGINT AS n_m,
        coalesce(sum(s.n_pair) FILTER (w.word = c.word_a), 0)::BIGINT AS n_self_f,
        coalesce(sum(s.n_pair) FILTER (w.word = c.word_b), 0)::BIGINT AS n_self_m
    FROM step_word_count AS w
    JOIN pair AS c USING (corpus)
    LEFT JOIN step_pair_count AS s
        ON s.corpus = w.corpus AND s.end_step = w.end_step AND s.word = w.word AND s.target = w.word
    WHERE w.word IN (c.word_a, c.word_b)
    GROUP BY ALL
),
alone AS (SELECT * FROM dense JOIN of_pair USING (corpus, contrast, end_step)),
spanned AS (
    SELECT 'block' AS span, * FROM alone
    UNION ALL BY NAME
    SELECT
        'so far' AS span, corpus, contrast, end_step, word,
        sum(n_pair_f) OVER so_far AS n_pair_f, sum(n_pair_m) OVER so_far AS n_pair_m,
        sum(n_f) OVER so_far AS n_f, sum(n_m) OVER so_far AS n_m,
        sum(n_self_f) OVER so_far AS n_self_f, sum(n_self_m) OVER so_far AS n_self_m
    FROM alone
    WINDOW so_far AS (PARTITION BY corpus, contrast, word ORDER BY end_step)
)
SELECT
    s.corpus, s.contrast, s.span, s.end_step, s.word,
    s.n_pair_f::BIGINT AS n_pair_f, s.n_pair_m::BIGINT AS n_pair_m,
    ln(s.n_pair_f / s.n_f) - ln(s.n_pair_m / s.n_m) AS delta_nats,
    sqrt(
        co_occurrence_dispersion(s.n_self_f, s.n_f, c.rule, c.window_tokens) / s.n_pair_f
        + co_occurrence_dispersion(s.n_self_m, s.n_m, c.rule, c.window_tokens) / s.n_pair_m
    ) AS delta_nats_se
FROM spanned AS s JOIN corpus AS c USING (corpus)
WHERE s.n_pair_f > 0 AND s.n_pair_m > 0;
