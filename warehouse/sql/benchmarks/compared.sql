-- grain: measure x corpus x contrast x model_key, figures of benchmark_figure as text
-- figures and differences hold one text per benchmark of $benchmarks, in their order, NULL where it
-- has none; differences are from the first. Shares are percentages, their differences points.
WITH asked AS (
    SELECT unnest($benchmarks::VARCHAR[]) AS benchmark, generate_subscripts($benchmarks, 1) AS place
),
named AS (
    SELECT *
    FROM (
        VALUES
            (1, 'pairs', 'pairs per seed word', 1, ''),
            (2, 'rejected', 'sentences rejected', 100, '%'),
            (3, 'revised', 'pairs of a revised sentence', 100, '%'),
            (4, 'natural', 'natural pairs', 100, '%'),
            (5, 'words', 'words of a sentence', 1, ''),
            (6, 'pronoun_first', 'pronoun first', 100, '%'),
            (7, 'within_eta', '|MaxPMI| within eta', 100, '%'),
            (8, 'us', 'US', 100, '%'),
            (9, 'pd', 'PD, points', 1, ''),
            (10, 'log_ratio', 'mean log ratio, nats', 1, '')
    ) AS v(rank_of, measure, label, factor, unit)
),
figures AS (
    SELECT f.*, a.place
    FROM benchmark_figure(eta_limit := $eta) AS f
    JOIN asked AS a USING (benchmark)
),
differences AS (
    SELECT d.*, a.place
    FROM benchmark_difference(eta_limit := $eta) AS d
    JOIN asked AS a USING (benchmark)
    WHERE d.reference = $benchmarks[1]
),
cell AS (
    SELECT
        n.rank_of, n.label, f.measure, f.corpus, f.contrast, f.model_key, f.place,
        format('{:.2f}{}', f.figure * n.factor, n.unit)
        || coalesce(format(' [{:.2f}, {:.2f}]', f.figure_low * n.factor, f.figure_high * n.factor), '')
        AS figure,
        format('{:+.2f}', d.difference * n.factor) || coalesce(format(
            ' [{:+.2f}, {:+.2f}]', d.difference_low * n.factor, d.difference_high * n.factor
        ), ' [no interval]') AS difference
    FROM figures AS f
    JOIN named AS n USING (measure)
    LEFT JOIN differences AS d
        ON d.measure = f.measure AND d.place = f.place
        AND d.corpus IS NOT DISTINCT FROM f.corpus
        AND d.contrast IS NOT DISTINCT FROM f.contrast
        AND d.model_key IS NOT DISTINCT FROM f.model_key
),
of_row AS (
    SELECT DISTINCT rank_of, label, measure, corpus, contrast, model_key FROM cell
)
SELECT
    o.label
    || coalesce(', ' || o.corpus || CASE WHEN o.contrast <> 'she/he' THEN ' ' || o.contrast ELSE '' END, '')
    || coalesce(', ' || m.label, '') AS label,
    list(c.figure ORDER BY a.place) AS figures,
    list(c.difference ORDER BY a.place) AS differences
FROM of_row AS o
CROSS JOIN asked AS a
LEFT JOIN cell AS c
    ON c.measure = o.measure AND c.place = a.place
    AND c.corpus IS NOT DISTINCT FROM o.corpus
    AND c.contrast IS NOT DISTINCT FROM o.contrast
    AND c.model_key IS NOT DISTINCT FROM o.model_key
LEFT JOIN model_label AS m ON m.model_key = o.model_key
GROUP BY o.rank_of, o.label, o.corpus, o.contrast, o.model_key, m.label
ORDER BY m.label NULLS FIRST, o.rank_of, o.corpus, o.contrast;
