-- grain: row of `printed`, figures of UnStereoEval, by table and then in their order
-- Each printed figure and ours from `measured`, which has rows of `metric_value` for the released
-- scores, and changes of US by deduplication. Two figures agree if they differ by at most 0.011,
-- since printed figures are rounded to 0.01. A printed size that is known to be wrong is
-- `contradicted by the release` if ours equals the released size. Our size of a benchmark is the
-- largest number of pairs of any model.
WITH contradicted (benchmark, eta_nats, value, released, note) AS (
    VALUES
    ('use-5', NULL, 4404, 4405, 'the paper counts 4,404 natural pairs, the release 4,405'),
    ('use-5', 0.65, 3701, 3698, 'Tables 1 and 12 print 3,701, Table 10 prints 3,698'),
    ('winogender', 0.8, 159, 150, 'Table 9 prints 159, Tables 1 and 12 print 150'),
    ('use-10', NULL, 4404, 4740, 'Tables 13 and 14 print the sizes of Table 1'),
    ('use-10', 0.8, 3978, 3916, 'Tables 13 and 14 print the sizes of Table 1'),
    ('use-10', 0.65, 3701, 3401, 'Tables 13 and 14 print the sizes of Table 1'),
    ('use-20', NULL, 1586, 4839, 'Tables 13 and 14 print the sizes of Table 1'),
    ('use-20', 0.8, 675, 3561, 'Tables 13 and 14 print the sizes of Table 1'),
    ('use-20', 0.65, 409, 2828, 'Tables 13 and 14 print the sizes of Table 1')
),
ours AS (
    SELECT
        metric, benchmark, model, eta_nats, value, value_low, value_high,
        coalesce(try_cast(options ->> '$.log_base' AS DOUBLE), exp(1.0)) AS log_base
    FROM measured
    WHERE subset = 'all' OR eta_nats IS NOT NULL
    UNION ALL BY NAME
    SELECT metric, benchmark, '' AS model, eta_nats, max(value) AS value, exp(1.0) AS log_base
    FROM measured
    WHERE metric = 'n' AND (subset = 'all' OR eta_nats IS NOT NULL)
    GROUP BY ALL
),
found AS (
    SELECT
        p.*,
        CASE
            WHEN p.metric = 'US_std' THEN 100 * sqrt(o.value * (1 - o.value) / 4404)
            WHEN p.metric IN ('US', 'gap') THEN 100 * o.value
            ELSE o.value
        END AS ours,
        CASE p.metric
            WHEN 'US_std' THEN NULL WHEN 'US' THEN 100 WHEN 'gap' THEN 100 ELSE 1
        END AS scale,
        scale * o.value_low AS ours_low,
        scale * o.value_high AS ours_high
    FROM (SELECT *, row_number() OVER () AS place FROM printed) AS p
    LEFT JOIN ours AS o
        ON o.benchmark = p.benchmark AND o.model = p.model
        AND o.eta_nats IS NOT DISTINCT FROM p.eta_nats
        AND o.metric = CASE p.metric
            WHEN 'benchmark_size' THEN 'n' WHEN 'US_std' THEN 'us' ELSE lower(p.metric)
        END
        AND round(o.log_base, 9)
            = round(CASE p.metric WHEN 'AuFC' THEN p.log_base ELSE exp(1.0) END, 9)
)
SELECT
    f.table, f.metric, f.benchmark, f.eta_nats, f.model, f.log_base, f.value,
    f.ours, f.ours_low, f.ours_high, f.ours - f.value AS difference,
    CASE
        WHEN f.ours IS NULL THEN 'not run'
        WHEN abs(f.ours - f.value) <= 0.011 THEN 'agree'
        WHEN abs(f.ours - c.released) <= 0.011 THEN 'contradicted by the release'
        ELSE 'off'
    END AS outcome,
    CASE
        WHEN f.ours IS NULL THEN ''
        WHEN c.note IS NOT NULL THEN c.note
        WHEN f.metric = 'US_std' THEN 'deviation with n = 4,404, not the set''s own'
        WHEN f.metric = 'AuFC' AND f.log_base = 10
            THEN 'log ratios to base 10, natural in Tables 20-22'
        WHEN f.metric = 'PD' AND f.table = 3
            THEN 'the caption of Table 3 says eta 0.65; its PD are those at 0.5, of Table 18'
        ELSE ''
    END AS note
FROM found AS f
LEFT JOIN contradicted AS c
    ON f.metric = 'benchmark_size' AND c.benchmark = f.benchmark AND c.value = f.value
    AND c.eta_nats IS NOT DISTINCT FROM f.eta_nats
ORDER BY f.table, f.place;
