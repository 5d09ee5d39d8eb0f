-- grain: word that has more than one row in `word_count`
SELECT word, count(*) AS n_rows FROM word_count WHERE corpus = $corpus
GROUP BY word HAVING count(*) > 1;
