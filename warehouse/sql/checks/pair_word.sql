-- grain: word or target of `pair_count` that is not in `word_count`
WITH named AS (
    SELECT word FROM pair_count WHERE corpus = $corpus
    UNION
    SELECT target FROM pair_count WHERE corpus = $corpus
)
SELECT word FROM named
ANTI JOIN (SELECT word FROM word_count WHERE corpus = $corpus) USING (word);
