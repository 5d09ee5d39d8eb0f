-- grain: row of `pair_count` with a rule, window or target that is not the corpus's
SELECT p.word, p.target, p.rule, p.window_tokens
FROM pair_count AS p JOIN corpus AS c USING (corpus)
WHERE p.corpus = $corpus AND (
    p.rule IS DISTINCT FROM c.rule
    OR p.window_tokens IS DISTINCT FROM c.window_tokens
    OR (c.targets <> 'all' AND NOT list_contains($targets, p.target))
);
