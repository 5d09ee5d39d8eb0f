-- grain: scores x benchmark x groups x corpus x contrast x subset x measure
-- The mean over models of the differences of `deduplication`, with Student's 95% interval over
-- models, NULL below five. n_fell and n_rose count the models whose own difference is clear. The
-- models are few and of one kind, so the interval is only about the mean of models like these.
CREATE OR REPLACE MACRO deduplication_mean(eta_limit := 0.65, epsilon := ln(1.65)) AS TABLE
WITH counted AS (
    SELECT
        scores, benchmark, groups, corpus, contrast, subset, measure,
        count(*) AS n_models,
        avg(difference ORDER BY model) AS difference,
        student_half(difference) AS half,
        count(*) FILTER (direction = 'fell') AS n_fell,
        count(*) FILTER (direction = 'rose') AS n_rose
    FROM deduplication(eta_limit := eta_limit, epsilon := epsilon)
    GROUP BY ALL
)
SELECT
    * EXCLUDE (half),
    end_within(difference, -half, most_points(measure)) AS difference_low,
    end_within(difference, half, most_points(measure)) AS difference_high,
    direction_of(difference - half, difference + half) AS direction
FROM counted;
