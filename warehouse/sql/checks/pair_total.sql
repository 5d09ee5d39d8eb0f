-- grain: corpus with more co-occurrences with targets than in total
-- A pair of two targets has two rows but is one co-occurrence.
WITH pairs AS (
    SELECT
        coalesce(sum(n_pair) FILTER (NOT list_contains($targets, word) OR word = target), 0)
        + coalesce(sum(n_pair) FILTER (list_contains($targets, word) AND word < target), 0)
        AS with_target
    FROM pair_count WHERE corpus = $corpus AND list_contains($targets, target)
)
SELECT c.corpus, p.with_target, c.n_pairs
FROM corpus AS c CROSS JOIN pairs AS p
WHERE c.corpus = $corpus AND p.with_target > c.n_pairs;
