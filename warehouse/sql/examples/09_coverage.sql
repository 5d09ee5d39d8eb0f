-- grain: benchmark x corpus x contrast x state
-- How many pairs lack a MaxPMI, or have unknown words, and why?
-- A constraint on |MaxPMI| keeps a pair only if it has a MaxPMI and every word is known. If words
-- are unknown, the corpus has too few of them near both pronouns; a larger corpus helps. A pair
-- without kept words has only stop words; nothing helps. percent_known is the share of the words
-- that are known.
SELECT
    benchmark, corpus, contrast,
    CASE
        WHEN corpus IS NULL THEN 'not constrained yet'
        WHEN n_words = 0 THEN 'no kept word'
        WHEN max_pmi_nats IS NULL AND n_words IS NULL THEN 'came after the constraint'
        WHEN max_pmi_nats IS NULL THEN 'no word with a delta'
        WHEN n_words_unknown > 0 THEN 'a MaxPMI of some words, others are unknown'
        ELSE 'has a MaxPMI'
    END AS state,
    count(DISTINCT pair_id) AS n_pairs,
    round(100 * sum(n_words_defined) / nullif(sum(n_words), 0), 1) AS percent_known
FROM audited_pair
GROUP BY ALL
ORDER BY ALL;
