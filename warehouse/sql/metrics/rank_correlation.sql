-- grain: subset x model_key x benchmark x groups x corpus x contrast x options
-- Spearman correlation of each group of `fit_point` (ties share their mean rank), with an interval
-- over points (words) on Fisher's z scale. A point also moves the ranks of the others, so its
-- influence is computed on means over pairs of points. Errors are HC3's, with df n - 2.
WITH ranked AS (
    SELECT
        subset, model_key, model, benchmark, groups, corpus, contrast, options, point, x_nats, y_nats,
        count(*) OVER grouped AS n,
        rank() OVER (grouped ORDER BY x_nats)
            + (count(*) OVER grouped_x - 1) / 2 - (n + 1) / 2 AS x,
        rank() OVER (grouped ORDER BY y_nats)
            + (count(*) OVER grouped_y - 1) / 2 - (n + 1) / 2 AS y
    FROM fit_point
    WINDOW
        grouped AS (PARTITION BY subset, model_key, benchmark, groups, corpus, contrast, options),
        grouped_x AS (PARTITION BY subset, model_key, benchmark, groups, corpus, contrast, options, x_nats),
        grouped_y AS (PARTITION BY subset, model_key, benchmark, groups, corpus, contrast, options, y_nats)
),
-- Ranks minus their mean are multiples of 1/2, so their sums are exact in any order. x_above_y is
-- the sum of x over the points above this one in y, ties by half: how the point moves other ranks.
moving AS (
    SELECT
        *,
        sum(x * y) OVER grouped AS sxy, sum(x ** 2) OVER grouped AS sxx, sum(y ** 2) OVER grouped AS syy,
        sum(x) OVER above_x - sum(x) OVER same_x / 2 AS x_above_x,
        sum(y) OVER above_x - sum(y) OVER same_x / 2 AS y_above_x,
        sum(y) OVER above_y - sum(y) OVER same_y / 2 AS y_above_y,
        sum(x) OVER above_y - sum(x) OVER same_y / 2 AS x_above_y
    FROM ranked
    WINDOW
        grouped AS (PARTITION BY subset, model_key, benchmark, groups, corpus, contrast, options),
        same_x AS (PARTITION BY subset, model_key, benchmark, groups, corpus, contrast, options, x),
        same_y AS (PARTITION BY subset, model_key, benchmark, groups, corpus, contrast, options, y),
        above_x AS (
            PARTITION BY subset, model_key, benchmark, groups, corpus, contrast, options
            ORDER BY x RANGE BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING
        ),
        above_y AS (
            PARTITION BY subset, model_key, benchmark, groups, corpus, contrast, options
            ORDER BY y RANGE BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING
        )
),
influence AS (
    SELECT
        subset, model_key, model, benchmark, groups, corpus, contrast, options, point, n,
        CASE
            WHEN n > 2 AND sxx > 0 AND syy > 0 THEN greatest(-1, least(1, sxy / sqrt(sxx * syy)))
        END AS r,
        leverage(x, sxx, n) AS h,
        (
            (x * y + y_above_x + x_above_y - 3 * sxy / n) / sqrt(sxx * syy)
            - r * (x ** 2 + 2 * x_above_x - 3 * sxx / n) / sxx / 2
            - r * (y ** 2 + 2 * y_above_y - 3 * syy / n) / syy / 2
        ) / nullif(1 - r ** 2, 0) AS on_z
    FROM moving
),
correlated AS (
    SELECT
        subset, model_key, model, benchmark, groups, corpus, contrast, options, n, r,
        sqrt(hc3_sum(on_z, on_z, h, point)) AS z_se
    FROM influence
    GROUP BY ALL
)
SELECT
    'rank correlation' AS metric, model_key, model, benchmark, groups, corpus, contrast, subset,
    NULL::DOUBLE AS eta_nats,
    NULL::DOUBLE AS epsilon_nats,
    r AS value,
    'correlation' AS unit,
    CASE WHEN is_enough(n) THEN (1 - r ** 2) * z_se END AS value_se,
    fisher_bound(r, -t_over(n - 2, n) * z_se) AS value_low,
    fisher_bound(r, t_over(n - 2, n) * z_se) AS value_high,
    'Fisher z, HC3 t 95%' AS interval,
    n, n - 2 AS df, n AS n_clusters, 'word' AS clusters,
    CASE WHEN is_enough(n) AND abs(r) < 1 THEN abs(atanh(r)) / z_se END AS statistic,
    options
FROM correlated;
