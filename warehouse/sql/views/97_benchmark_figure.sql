-- grain: benchmark x measure x corpus x contrast x model_key
-- The figures of benchmark_word over all seed words of a benchmark, with 95% intervals over words
-- (`clustered`): Wilson's of shares, which have the number of independent rows that all words alike
-- would be worth where nothing varies, else Student's.
CREATE OR REPLACE MACRO benchmark_figure(eta_limit := 0.65, epsilon := ln(1.65)) AS TABLE
WITH figure AS (
    SELECT
        {
            'benchmark': benchmark, 'measure': measure, 'corpus': corpus, 'contrast': contrast,
            'model_key': model_key
        } AS subject,
        'word: ' || word AS cluster_1, NULL::VARCHAR AS cluster_2, NULL::VARCHAR AS stratum,
        total AS numerator, n AS denominator
    FROM benchmark_word(eta_limit := eta_limit, epsilon := epsilon)
),
counted AS (SELECT subject, sum(denominator)::BIGINT AS n FROM figure GROUP BY subject),
bounded AS (
    SELECT
        unnest(subject), c.value AS figure, c.se, c.t, c.n_most, c.n_clusters AS n_words, counted.n,
        subject.measure IN ('rejected', 'revised', 'natural', 'pronoun_first', 'within_eta', 'us')
            AS is_share
    FROM clustered('figure') AS c
    JOIN counted USING (subject)
)
SELECT
    benchmark, measure, corpus, contrast, model_key, figure,
    if(
        is_share, mean_low(figure, se, t, 0, 1, if(se > 1e-9, 'infinity'::DOUBLE, n_most)),
        mean_low(figure, se, t)
    ) AS figure_low,
    if(
        is_share, mean_high(figure, se, t, 0, 1, if(se > 1e-9, 'infinity'::DOUBLE, n_most)),
        mean_high(figure, se, t)
    ) AS figure_high,
    n_words, n
FROM bounded;
