-- grain: corpus x contrast x benchmark
-- Benchmarks in which all words are seed words of the corpus, chosen because they don't lean. These
-- words can't show whether a model follows the corpus; the other words of the sentences can.
CREATE OR REPLACE VIEW neutral_benchmark AS
WITH made_for AS (
    SELECT DISTINCT benchmark, lower(word) AS word FROM benchmark_pair WHERE word IS NOT NULL
),
of_word AS (SELECT *, count(*) OVER (PARTITION BY benchmark) AS n_words FROM made_for),
seed AS (SELECT DISTINCT corpus, contrast, word FROM seed_word)
SELECT corpus, contrast, benchmark
FROM of_word JOIN seed USING (word)
GROUP BY ALL
HAVING count(*) = any_value(n_words);
