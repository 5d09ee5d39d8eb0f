-- grain: family x scores x benchmark x groups x corpus x contrast x subset x measure
-- Whether larger models differ: how much a measure of `size_point` changes within families if a
-- model is ten times larger. A family with two sizes or more has the slope of its models' figures
-- on log10 of their parameters. It has no interval, since its models share text and design. The row
-- with an empty family is the mean over these families, each counted once, with Student's 95%
-- interval over families: NULL below five, and if all slopes are equal. Families' slopes are not
-- equally certain. Even so, a t-test of a few independent normal estimates has at most 5% false
-- positives (Bakirov and Székely 2005; Ibragimov and Müller 2010, t-Statistic Based Correlation and
-- Heterogeneity Robust Inference). unit is `points`, or `nats per nat` for slopes. direction says
-- whether the measure `rose` with size, `fell`, or `neither` (`direction_of`).
CREATE OR REPLACE VIEW size_trend AS
WITH line AS (
    SELECT
        family, scores, benchmark, groups, corpus, contrast, subset, measure,
        CASE measure WHEN 'slope' THEN 'nats per nat' ELSE 'points' END AS unit,
        count(*) AS n_models, 1 AS n_families,
        min(n_parameters) AS smallest, max(n_parameters) AS largest,
        regr_slope(
            CASE measure WHEN 'us' THEN 100 ELSE 1 END * figure, log10(n_parameters) ORDER BY model
        ) AS per_tenfold
    FROM size_point
    WHERE family IS NOT NULL
    GROUP BY ALL
    HAVING min(n_parameters) < max(n_parameters)
),
mean AS (
    SELECT
        '' AS family, scores, benchmark, groups, corpus, contrast, subset, measure, unit,
        sum(n_models)::BIGINT AS n_models, count(*) AS n_families,
        min(smallest) AS smallest, max(largest) AS largest,
        avg(per_tenfold ORDER BY family) AS middle,
        student_half(per_tenfold) AS half
    FROM line
    GROUP BY ALL
)
SELECT
    * EXCLUDE (middle, half), middle AS per_tenfold,
    middle - half AS per_tenfold_low, middle + half AS per_tenfold_high,
    direction_of(middle - half, middle + half) AS direction
FROM mean
UNION ALL BY NAME
SELECT * FROM line;
