-- grain: benchmark x measure, `us` (a share) and `pd` (percentage points), pairs that both scored
-- What became of US and PD from one model to another, both by key: figures of the pairs that both
-- scored, their difference (after less before) with Student's 95% interval over pairs, each with
-- both of its scores, and whether it fell, rose or neither.
CREATE OR REPLACE MACRO preference_difference(
    before_key, after_key, epsilon := ln(1.65)
) AS TABLE
WITH leaning AS (
    SELECT
        b.benchmark,
        lean(b.log_ratio_nats, epsilon) AS old,
        lean(a.log_ratio_nats, epsilon) AS new
    FROM scored_pair AS b
    JOIN scored_pair AS a ON a.benchmark = b.benchmark AND a.pair_id = b.pair_id
    WHERE b.model_key = before_key AND a.model_key = after_key
),
measured AS (
    SELECT
        benchmark,
        unnest(['us', 'pd']) AS measure,
        unnest([(old = 0)::INTEGER, 100 * old]) AS old,
        unnest([(new = 0)::INTEGER, 100 * new]) AS new
    FROM leaning
),
counted AS (
    SELECT
        benchmark, measure, count(*) AS n_pairs,
        avg(old) AS before_mean, avg(new) AS after_mean, avg(new - old) AS difference,
        student_half(new - old) AS half
    FROM measured
    GROUP BY ALL
)
SELECT
    benchmark, measure, n_pairs, before_mean, after_mean, difference,
    difference - half AS difference_low,
    difference + half AS difference_high,
    direction_of(difference - half, difference + half) AS direction
FROM counted;
