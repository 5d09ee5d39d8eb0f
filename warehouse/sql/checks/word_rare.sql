-- grain: word of `word_count` that is rarer than the corpus's min_count and not in its word list
SELECT w.word, w.n_word, c.min_count
FROM word_count AS w JOIN corpus AS c USING (corpus)
WHERE w.corpus = $corpus
    AND w.n_word BETWEEN 1 AND c.min_count - 1
    AND NOT list_contains($targets, w.word);
