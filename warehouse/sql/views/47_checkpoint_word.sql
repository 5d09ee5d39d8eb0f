-- grain: series x setting x step x benchmark x groups x word, words that pairs were made for
-- Mean log ratio of a word's pairs by step of training, with its standard error and Student's 95%
-- interval over its pairs (NULL for a single pair). A model that learns drifts for all words at
-- once: `relative_nats` is the mean of what a pair has above the pairs of other words at that step,
-- with the same interval. The other words are those of the pair's sentence frame where it has 20
-- words, else those of the benchmark. Table `word_onset` has the step at which the word begins to
-- lean, corrected for all words and steps, which these intervals are not.
CREATE OR REPLACE VIEW checkpoint_word AS
WITH pair AS (
    SELECT
        c.series, c.setting, c.step, model_key, s.benchmark, s.groups, lower(s.word) AS word,
        s.pair_id, s.log_ratio_nats, frame_of(s.template, s.word) AS frame
    FROM scored_pair AS s
    JOIN checkpoint AS c USING (model_key)
    WHERE s.word IS NOT NULL
),
of_word AS (
    SELECT
        model_key, benchmark, groups, compared, word,
        count(*) AS n, sum(log_ratio_nats ORDER BY pair_id) AS total
    FROM pair, unnest([frame, '']) AS u(compared) -- '' is the whole benchmark
    GROUP BY ALL
),
-- With 20 words the mean of the others adds a twentieth to a pair's variance.
other_word AS (
    SELECT
        model_key, benchmark, groups, compared, word,
        (sum(total ORDER BY word) OVER of_frame - total)
            / nullif(sum(n) OVER of_frame - n, 0) AS mean_nats
    FROM of_word
    WINDOW of_frame AS (PARTITION BY model_key, benchmark, groups, compared)
    QUALIFY compared = '' OR count(*) OVER of_frame >= 20
),
relative AS (
    SELECT
        p.*, log_ratio_nats - coalesce(f.mean_nats, b.mean_nats) AS above_others
    FROM pair AS p
    JOIN other_word AS b USING (model_key, benchmark, groups, word)
    LEFT JOIN other_word AS f
        ON (f.model_key, f.benchmark, f.groups, f.word, f.compared)
            = (p.model_key, p.benchmark, p.groups, p.word, p.frame)
    WHERE b.compared = ''
)
SELECT
    series, setting, step, model_key, benchmark, groups, word,
    count(*) AS n_pairs,
    avg(log_ratio_nats ORDER BY pair_id) AS mean_log_ratio_nats,
    stddev_samp(log_ratio_nats ORDER BY pair_id) / sqrt(count(*)) AS mean_log_ratio_nats_se,
    mean_log_ratio_nats - t975(count(*) - 1) * mean_log_ratio_nats_se AS mean_log_ratio_nats_low,
    mean_log_ratio_nats + t975(count(*) - 1) * mean_log_ratio_nats_se AS mean_log_ratio_nats_high,
    avg(above_others ORDER BY pair_id) AS relative_nats,
    CASE WHEN stddev_samp(above_others ORDER BY pair_id) > 1e-12
        THEN stddev_samp(above_others ORDER BY pair_id) / sqrt(count(*))
    END AS relative_nats_se,
    relative_nats - t975(count(*) - 1) * relative_nats_se AS relative_nats_low,
    relative_nats + t975(count(*) - 1) * relative_nats_se AS relative_nats_high
FROM relative
GROUP BY ALL;
