-- grain: series x setting x step x benchmark x groups x corpus x contrast x block
-- Does a checkpoint follow what it read last? Its mean log ratio of each word against the word's
-- delta in a block of the text's steps and in all text before that block (view `step_delta`).
-- `block` is `last`, the one that ends at the checkpoint's step or before it, or `next`, the control:
-- the block after that, which the checkpoint has not read. Slopes and correlations are with each text
-- alone, partial slopes with both at once, and `difference` is the partial slope on the block minus
-- that on the text before, with a 95% interval over words (sandwich error, Student's t with three
-- degrees of freedom fewer than words). Leans of a short block are noisy, which draws its slope to 0.
CREATE OR REPLACE VIEW step_lean AS
WITH so_far AS (
    SELECT corpus, contrast, end_step, word, delta_nats FROM step_delta
    WHERE span = 'so far' AND contrast IN (FROM main_contrast)
),
alone AS (
    SELECT corpus, contrast, end_step, word, delta_nats FROM step_delta
    WHERE span = 'block' AND contrast IN (FROM main_contrast)
),
ended AS (
    SELECT
        corpus, end_step,
        lag(end_step) OVER (PARTITION BY corpus ORDER BY end_step) AS before_step
    FROM (SELECT DISTINCT corpus, end_step FROM step_word_count)
),
read AS (
    SELECT
        c.model_key, c.step, e.corpus,
        max(e.end_step) FILTER (e.end_step <= c.step) AS "last",
        min(e.end_step) FILTER (e.end_step > c.step) AS "next"
    FROM (SELECT DISTINCT model_key, step FROM checkpoint_word) AS c CROSS JOIN ended AS e
    GROUP BY ALL
),
compared AS (UNPIVOT read ON "last", "next" INTO NAME block VALUE end_step),
point AS (
    SELECT
        w.series, w.setting, w.step, w.benchmark, w.groups, c.corpus, b.contrast, c.block, w.word,
        w.mean_log_ratio_nats AS y,
        s.delta_nats AS x_before, b.delta_nats AS x_block
    FROM checkpoint_word AS w
    JOIN compared AS c USING (model_key)
    JOIN ended AS e USING (corpus, end_step)
    JOIN alone AS b USING (corpus, end_step, word)
    JOIN so_far AS s
        ON s.corpus = c.corpus AND s.contrast = b.contrast AND s.word = w.word
        AND s.end_step = e.before_step
    WHERE (c.corpus, b.contrast, w.benchmark) NOT IN (FROM neutral_benchmark)
        AND (c.corpus, w.benchmark) NOT IN (FROM foreign_corpus)
),
moments AS (
    SELECT
        series, setting, step, benchmark, groups, corpus, contrast, block,
        count(*) AS n_words,
        avg(y ORDER BY word) AS mean_y,
        avg(x_before ORDER BY word) AS mean_before,
        avg(x_block ORDER BY word) AS mean_block,
        regr_slope(y, x_before ORDER BY word) AS slope_before,
        regr_slope(y, x_block ORDER BY word) AS slope_block,
        corr(y, x_before ORDER BY word) AS r_before,
        corr(y, x_block ORDER BY word) AS r_block,
        regr_sxx(y, x_before ORDER BY word) AS s11,
        regr_sxx(y, x_block ORDER BY word) AS s22,
        regr_sxy(x_before, x_block ORDER BY word) AS s12
    FROM point
    GROUP BY ALL
),
fitted AS (
    SELECT
        *,
        CASE WHEN is_fitted THEN s22 * (slope_before * s11 - slope_block * s12) / det END AS b_before,
        CASE WHEN is_fitted THEN s11 * (slope_block * s22 - slope_before * s12) / det END AS b_block
    FROM (
        SELECT
            *, s11 * s22 - s12 ** 2 AS det,
            n_words > 3 AND s11 * s22 - s12 ** 2 > 1e-9 * s11 * s22 AS is_fitted
        FROM moments
    )
),
-- What each word adds to the partial slope on the block minus that on the text before.
influence AS (
    SELECT
        f.*, p.word,
        (
            (f.s11 + f.s12) * (p.x_block - f.mean_block)
            - (f.s22 + f.s12) * (p.x_before - f.mean_before)
        ) / f.det * (
            p.y - f.mean_y - f.b_before * (p.x_before - f.mean_before)
            - f.b_block * (p.x_block - f.mean_block)
        ) AS u
    FROM fitted AS f
    JOIN point AS p USING (series, setting, step, benchmark, groups, corpus, contrast, block)
)
SELECT
    series, setting, step, benchmark, groups, corpus, contrast, block, n_words,
    slope_before, r_before, slope_block, r_block,
    b_before AS partial_before, b_block AS partial_block,
    b_block - b_before AS difference,
    difference - half AS difference_low, difference + half AS difference_high
FROM (
    SELECT *, t975(n_words - 3) * sqrt(n_words / (n_words - 3) * sum_u2) AS half
    FROM (SELECT * EXCLUDE (word, u), sum(u ** 2 ORDER BY word) AS sum_u2 FROM influence GROUP BY ALL)
);
