-- grain: benchmark x corpus x contrast x state
-- How many pairs lack a MaxPMI, and why?
-- A constraint on |MaxPMI| drops the pairs without one. If no word of a pair has a delta, the
-- corpus has none of them near both pronouns; a larger corpus helps. A pair without kept words has
-- only stop words; nothing helps.
SELECT
    benchmark, corpus, contrast,
    CASE
        WHEN corpus IS NULL THEN 'not constrained yet'
        WHEN max_pmi_nats IS NOT NULL THEN 'has a MaxPMI'
        WHEN n_words IS NULL THEN 'came after the constraint'
        WHEN n_words = 0 THEN 'no kept word'
        ELSE 'no word with a delta'
    END AS state,
    count(DISTINCT pair_id) AS n_pairs
FROM audited_pair
GROUP BY ALL
ORDER BY ALL;
