-- grain: contrast, those of $contrasts in their order
-- For how many words does a corpus define the delta of each pair of a word list, and which share of
-- its vocabulary is that? (UnStereoEval, Table 4) The vocabulary is all distinct words. Words pruned
-- by a min_count have no delta, so the share is then a lower bound.
WITH listed AS (
    SELECT unnest($contrasts::VARCHAR[]) AS contrast, generate_subscripts($contrasts, 1) AS position
),
vocabulary AS (
    SELECT n_words AS n FROM corpus WHERE corpus = $corpus
),
defined AS (
    SELECT contrast, count(*) AS n, median(delta_nats_se) AS median_se_nats
    FROM word_delta
    WHERE corpus = $corpus
    GROUP BY contrast
)
SELECT
    l.contrast,
    coalesce(d.n, 0) AS n_words,
    v.n AS n_vocabulary,
    100 * coalesce(d.n, 0) / nullif(v.n, 0) AS percent_of_vocabulary,
    d.median_se_nats
FROM listed AS l
CROSS JOIN vocabulary AS v
LEFT JOIN defined AS d USING (contrast)
ORDER BY l.position;
