-- grain: corpus, the one of $corpus
-- Which share of a corpus's words co-occurs with he, with she, and with both? (UnStereoEval, Figure 4)
-- Shares are of all distinct words: lower bounds if words were pruned, since those have no row.
WITH near AS (
    SELECT word, bool_or(target = 'he') AS he, bool_or(target = 'she') AS she
    FROM word_association
    WHERE corpus = $corpus AND target IN ('he', 'she')
    GROUP BY word
)
SELECT
    n_words,
    100 * (SELECT count(*) FILTER (he) FROM near) / nullif(n_words, 0) AS percent_he,
    100 * (SELECT count(*) FILTER (she) FROM near) / nullif(n_words, 0) AS percent_she,
    100 * (SELECT count(*) FILTER (he AND she) FROM near) / nullif(n_words, 0) AS percent_both
FROM corpus
WHERE corpus = $corpus;
