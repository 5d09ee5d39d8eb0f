-- grain: word x target that has more than one row in `pair_count`
SELECT word, target, count(*) AS n_rows FROM pair_count WHERE corpus = $corpus
GROUP BY word, target HAVING count(*) > 1;
