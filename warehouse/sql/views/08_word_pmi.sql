-- grain: corpus x contrast x word, words that co-occur with either word of a contrast of two words
-- PMI of every word with the first and the second word of a contrast, and the co-occurrences behind
-- both; NULL if the two never co-occur. If both are known, their difference is the word's delta.
-- Imported statistics have only deltas, and so no rows here.
CREATE OR REPLACE VIEW word_pmi AS
WITH side AS (
    SELECT corpus, contrast, split_part(contrast, '/', 1) AS a, split_part(contrast, '/', 2) AS b
    FROM (SELECT DISTINCT corpus, contrast FROM word_delta)
    WHERE contrast LIKE '%/%'
),
found AS (
    SELECT
        s.corpus, s.contrast, a.word, a.n_pair, a.pmi_nats, a.target = s.a AS is_first
    FROM side AS s
    JOIN word_association AS a ON a.corpus = s.corpus AND a.target IN (s.a, s.b)
)
SELECT
    corpus, contrast, word,
    max(pmi_nats) FILTER (is_first) AS pmi_f_nats,
    max(pmi_nats) FILTER (NOT is_first) AS pmi_m_nats,
    max(n_pair) FILTER (is_first) AS n_pair_f,
    max(n_pair) FILTER (NOT is_first) AS n_pair_m
FROM found
GROUP BY ALL;
