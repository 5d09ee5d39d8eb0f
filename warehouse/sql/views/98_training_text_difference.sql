-- grain: training_text x scores x benchmark x groups x corpus x contrast x subset x measure
-- Whether models trained on a text differ from others: the mean over families trained on
-- training_text, wholly or in part, minus the mean over all other published families. Each family
-- counts once, by the mean of its models in `size_point`. The others include families whose text
-- isn't published ('' in table `model`), so they may have read it. A text is compared if at least
-- two families have it and at least two don't. The 95% interval is Welch's over families (the two
-- groups may differ in spread), without correction for several benchmarks. It is NULL below five
-- families together, and if nothing varies. unit is `points`, or `nats per nat` for slopes.
-- direction: `rose` if the families of the text have the higher figure, `fell` if the lower, or
-- `neither`; NULL below five families on either side.
CREATE OR REPLACE VIEW training_text_difference AS
WITH of_family AS (
    SELECT
        family, training_text, scores, benchmark, groups, corpus, contrast, subset, measure,
        count(*) AS n_models,
        avg(CASE measure WHEN 'us' THEN 100 ELSE 1 END * figure ORDER BY model) AS figure
    FROM size_point
    WHERE family IS NOT NULL AND training_text IS NOT NULL
    GROUP BY ALL
),
trained AS (SELECT DISTINCT training_text AS read FROM of_family WHERE training_text <> ''),
sided AS (
    SELECT
        t.read, f.* EXCLUDE (family, training_text, n_models, figure),
        sum(n_models)::BIGINT AS n_models,
        count(*) FILTER (training_text = read) AS n_families,
        count(*) FILTER (training_text <> read) AS n_other_families,
        avg(figure ORDER BY family) FILTER (training_text = read) AS mean_figure,
        avg(figure ORDER BY family) FILTER (training_text <> read) AS other_figure,
        var_samp(figure) FILTER (training_text = read) AS variance,
        var_samp(figure) FILTER (training_text <> read) AS other_variance
    FROM of_family AS f, trained AS t
    GROUP BY ALL
),
of_means AS (
    SELECT
        * REPLACE (
            variance / n_families AS variance, other_variance / n_other_families AS other_variance
        )
    FROM sided
    WHERE n_families > 1 AND n_other_families > 1
),
compared AS (
    SELECT
        *, mean_figure - other_figure AS middle,
        CASE WHEN is_enough(n_families + n_other_families) AND variance + other_variance > 1e-18
            THEN sqrt(variance + other_variance) * t975(
                (variance + other_variance) ** 2
                / (variance ** 2 / (n_families - 1) + other_variance ** 2 / (n_other_families - 1))
            )
        END AS half
    FROM of_means
)
SELECT
    read AS training_text, scores, benchmark, groups, corpus, contrast, subset, measure,
    CASE measure WHEN 'slope' THEN 'nats per nat' ELSE 'points' END AS unit,
    n_models, n_families, n_other_families, mean_figure, other_figure, middle AS difference,
    middle - half AS difference_low, middle + half AS difference_high,
    direction_of(
        middle - half, middle + half, n_of := least(n_families, n_other_families)
    ) AS direction
FROM compared;
