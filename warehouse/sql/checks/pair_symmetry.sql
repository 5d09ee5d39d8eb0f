-- grain: pair of two targets whose counts under either target differ
WITH both_ways AS (
    SELECT word, target, n_pair FROM pair_count
    WHERE corpus = $corpus AND list_contains($targets, word) AND word <> target
    AND list_contains($targets, target)
)
SELECT
    coalesce(a.word, b.target) AS word, coalesce(a.target, b.word) AS target,
    a.n_pair AS n_pair, b.n_pair AS n_pair_other_way
FROM both_ways AS a FULL JOIN both_ways AS b ON a.word = b.target AND a.target = b.word
WHERE a.n_pair IS DISTINCT FROM b.n_pair;
