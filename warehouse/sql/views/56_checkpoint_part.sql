-- grain: series x setting x step x benchmark x groups x pair_id
-- Scores of the pairs that every step of a model's checkpoints has, and what each is made for: `point`
-- is its word, or the pair itself.
CREATE OR REPLACE VIEW checkpoint_pair AS
WITH pair AS (
    SELECT
        c.*, s.benchmark, s.groups, coalesce(lower(s.word), s.pair_id) AS point, s.pair_id,
        s.log_ratio_nats,
        count(*) OVER (PARTITION BY series, setting, s.benchmark, s.groups, s.pair_id) AS n_seen
    FROM scored_pair AS s
    JOIN checkpoint AS c USING (model_key)
),
pair_steps AS (
    SELECT series, setting, benchmark, groups, count(DISTINCT step) AS n_steps
    FROM pair
    GROUP BY ALL
)
SELECT pair.* EXCLUDE (n_seen)
FROM pair
JOIN pair_steps USING (series, setting, benchmark, groups)
WHERE n_seen = n_steps;

-- grain: series x setting x step x benchmark x groups x corpus x contrast x measure x point
-- What each point (a word; a pair where it was made for none) adds to the curves of a model's
-- checkpoints. Measures of pairs: us, pd, mean log ratio; of the fit of each corpus (subsets
-- `words, measured delta` and `words, max_pmi` of view fit): slope, explained variance. Only pairs
-- and points that every step has are among them.
-- `influence` is how far the point moves the value, to first order; those of a fit are HC3's, over
-- one minus the point's leverage. As the points are the same at each step, the variance of a change
-- is that of the differences of their influences: paired over steps, clustered by word. `df` are the
-- degrees of freedom of that of a fit (`hc3_df`).
CREATE OR REPLACE VIEW checkpoint_part AS
WITH of_pair AS (
    SELECT
        * EXCLUDE (log_ratio_nats),
        unnest(['us', 'pd', 'mean log ratio']) AS measure,
        unnest([
            (lean(log_ratio_nats) = 0)::INTEGER, 100 * lean(log_ratio_nats), log_ratio_nats
        ]) AS figure
    FROM checkpoint_pair
),
summed AS (
    SELECT
        series, setting, step, model_key, benchmark, groups, measure, point,
        count(*) AS n_of, sum(figure ORDER BY pair_id) AS total
    FROM of_pair
    GROUP BY ALL
),
mean_of AS (
    SELECT
        series, setting, step, benchmark, groups, measure,
        sum(n_of)::BIGINT AS n, sum(total ORDER BY point) / sum(n_of) AS value
    FROM summed
    GROUP BY ALL
),
fitted AS (
    SELECT
        c.*, f.benchmark, f.groups, f.corpus, f.contrast, f.point, f.x_nats, f.y_nats,
        count(*) OVER (
            PARTITION BY series, setting, f.benchmark, f.groups, f.corpus, f.contrast, f.point
        ) AS n_seen
    FROM fit_point AS f
    JOIN checkpoint AS c USING (model_key)
    WHERE f.subset IN ('words, measured delta', 'words, max_pmi')
),
fit_steps AS (
    SELECT series, setting, benchmark, groups, corpus, contrast, count(DISTINCT step) AS n_steps
    FROM fitted
    GROUP BY ALL
),
of_fit AS (
    SELECT * EXCLUDE (n_seen, n_steps)
    FROM fitted
    JOIN fit_steps USING (series, setting, benchmark, groups, corpus, contrast)
    WHERE n_seen = n_steps
),
moments AS (
    SELECT
        series, setting, step, benchmark, groups, corpus, contrast,
        count(*) AS n,
        avg(x_nats ORDER BY point) AS mean_x, avg(y_nats ORDER BY point) AS mean_y,
        regr_sxx(y_nats, x_nats ORDER BY point) AS sxx,
        regr_syy(y_nats, x_nats ORDER BY point) AS syy,
        regr_sxy(y_nats, x_nats ORDER BY point) AS sxy
    FROM of_fit
    GROUP BY ALL
),
line AS (
    SELECT
        *, sxy / sxx AS slope, greatest(-1, least(1, sxy / sqrt(sxx * syy))) AS r
    FROM moments
    WHERE n > 2 AND sxx > n * 1e-18 AND syy > n * 1e-18
),
on_line AS (
    SELECT
        f.*, l.n, slope, r, sxx,
        x_nats - mean_x AS x, y_nats - mean_y AS y, x / sqrt(sxx) AS z_x, y / sqrt(syy) AS z_y,
        leverage(x, sxx, l.n) AS h
    FROM of_fit AS f
    JOIN line AS l USING (series, setting, step, benchmark, groups, corpus, contrast)
),
line_df AS (
    SELECT
        series, setting, step, benchmark, groups, corpus, contrast,
        hc3_df(x, h, sxx, n, point) AS df
    FROM on_line
    GROUP BY ALL
)
SELECT
    series, setting, step, model_key, benchmark, groups, '' AS corpus, '' AS contrast, measure,
    point, (total - n_of * value) / n AS influence, value, n, NULL::DOUBLE AS df
FROM summed
JOIN mean_of USING (series, setting, step, benchmark, groups, measure)
UNION ALL
SELECT
    series, setting, step, model_key, benchmark, groups, corpus, contrast,
    unnest(['slope', 'explained variance']), point,
    unnest([
        x * (y - slope * x) / sxx / (1 - h),
        2 * r * (z_x * z_y - r * (z_x ** 2 + z_y ** 2) / 2) / (1 - h)
    ]),
    unnest([slope, r ** 2]), n, df
FROM on_line
JOIN line_df USING (series, setting, step, benchmark, groups, corpus, contrast);
