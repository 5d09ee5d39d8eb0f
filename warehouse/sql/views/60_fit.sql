-- grain: subset x model_key x benchmark x groups x corpus x contrast x options
-- The least-squares line of each group of fit points. Its standard errors (HC3, `hc3_sum`) are over
-- points (words) like these. From five points on it has 95% intervals by Student's t with slope_df
-- degrees of freedom (`hc3_df`). The interval of the correlation is computed on Fisher's z scale,
-- where z_se is its error. A spread below 1e-9 nats is rounding, so nothing is fitted. Two points
-- always correlate at 1 or -1, so below three points there is no correlation and no error.
--
-- The line's height at mean_x_nats is mean_y_nats, with the error mean_y_nats_se;
-- level_slope_covariance is the covariance of that height and the slope.
--
-- reliability   1 - mean(x_error_nats ^ 2) / variance(x): the share of the variance of x that isn't
--               error. Errors of x flatten the slope by this factor. 1 if x is exact, 0 if errors
--               explain all of the variance, NULL if the error of a point is unknown
-- error_over    `exact`, or the sampling unit of the errors. If it is `co-occurrences` for any
--               point, errors are lower bounds, and the reliability is an upper bound
-- corrected     slope / reliability, the slope on leans without error (Fuller 1987), with a
--               jackknife over points. NULL if x is exact, below four points, and for a reliability
--               below 0.3, at which nothing can be said about the slope
CREATE OR REPLACE VIEW fit AS
WITH point AS MATERIALIZED (FROM fit_point),
moments AS (
    SELECT
        subset, model_key, model, benchmark, groups, corpus, contrast, options,
        count(*) AS n,
        avg(x_nats ORDER BY point) AS mean_x_nats,
        avg(y_nats ORDER BY point) AS mean_y_nats,
        regr_sxx(y_nats, x_nats ORDER BY point) AS sxx,
        regr_syy(y_nats, x_nats ORDER BY point) AS syy,
        regr_sxy(y_nats, x_nats ORDER BY point) AS sxy,
        CASE
            WHEN count(x_error_nats) = count(*) THEN sum(x_error_nats ** 2 ORDER BY point)
        END AS noise,
        -- 'co-occurrences' if any point has it, since it sorts first
        CASE WHEN count(x_error_nats) = count(*) THEN min(error_over) END AS error_over
    FROM point
    GROUP BY ALL
),
fitted AS (
    SELECT
        *,
        n > 1 AND sxx > n * 1e-18 AS has_slope,
        CASE WHEN has_slope THEN sxy / sxx END AS slope,
        CASE
            WHEN n > 2 AND has_slope AND syy > n * 1e-18
                THEN greatest(-1, least(1, sxy / sqrt(sxx * syy)))
        END AS correlation,
        CASE WHEN has_slope AND noise >= 0 THEN greatest(0, 1 - (n - 1) / n * noise / sxx) END AS reliability,
        n > 3 AND noise > 0 AND reliability >= 0.3 AS is_corrected
    FROM moments
),
on_line AS (
    SELECT
        f.*, p.point, p.x_nats - f.mean_x_nats AS x, p.y_nats - f.mean_y_nats AS y,
        y - f.slope * x AS residual, leverage(x, f.sxx, f.n) AS h,
        x / sqrt(f.sxx) AS z_x, y / sqrt(f.syy) AS z_y,
        (z_x * z_y - f.correlation * (z_x ** 2 + z_y ** 2) / 2) / nullif(1 - f.correlation ** 2, 0) AS on_z,
        CASE WHEN f.is_corrected THEN
            (f.sxy - f.n / (f.n - 1) * x * y) / (
                f.sxx - f.n / (f.n - 1) * x ** 2
                - (f.n - 2) / (f.n - 1) * (f.noise - p.x_error_nats ** 2)
            )
        END AS corrected_without
    FROM fitted AS f
    JOIN point AS p USING (subset, model_key, model, benchmark, groups, corpus, contrast, options)
),
erring AS (
    SELECT
        * EXCLUDE (
            has_slope, is_corrected, noise, point, x, y, residual, h, z_x, z_y, on_z,
            corrected_without
        ),
        mean_y_nats - slope * mean_x_nats AS intercept_nats,
        sqrt(hc3_sum(x * residual / sxx, x * residual / sxx, h, point)) AS slope_se,
        hc3_df(x, h, sxx, n, point) AS slope_df,
        sqrt(hc3_sum(on_z, on_z, h, point)) AS z_se,
        sqrt(hc3_sum(residual / n, residual / n, h, point)) AS mean_y_nats_se,
        hc3_sum(residual / n, x * residual / sxx, h, point) AS level_slope_covariance,
        CASE WHEN is_corrected THEN slope / reliability END AS corrected,
        stddev_pop(corrected_without ORDER BY point) AS spread_without
    FROM on_line
    GROUP BY ALL
)
SELECT
    * EXCLUDE (spread_without),
    sqrt(n - 1) * spread_without AS corrected_se,
    slope - t_over(slope_df, n) * slope_se AS slope_low,
    slope + t_over(slope_df, n) * slope_se AS slope_high,
    fisher_bound(correlation, -t_over(slope_df, n) * z_se) AS correlation_low,
    fisher_bound(correlation, t_over(slope_df, n) * z_se) AS correlation_high,
    corrected - t_over(slope_df, n) * corrected_se AS corrected_low,
    corrected + t_over(slope_df, n) * corrected_se AS corrected_high
FROM erring;
