-- grain: row of `word_count` or `pair_count` that counts less than one
SELECT word, NULL AS target, n_word AS n FROM word_count WHERE corpus = $corpus AND n_word < 1
UNION ALL
SELECT word, target, n_pair FROM pair_count WHERE corpus = $corpus AND n_pair < 1;
