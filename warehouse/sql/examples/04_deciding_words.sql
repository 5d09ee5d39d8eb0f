-- grain: corpus x contrast x benchmark x word, ten per benchmark
-- Which words decide MaxPMI?
-- Each pair's MaxPMI is the lean of one of its words. percent is the share of pairs that a word
-- decides: when a few words decide most, the benchmark is about these words.
SELECT
    corpus, contrast, benchmark, max_pmi_word, count(*) AS n_pairs,
    round(100 * n_pairs / sum(n_pairs) OVER of_benchmark, 1) AS percent,
    round(avg(max_pmi_nats ORDER BY pair_id), 2) AS max_pmi_nats
FROM pair_association
JOIN benchmark_pair USING (benchmark, pair_id)
WHERE is_natural IS NOT FALSE AND max_pmi_nats IS NOT NULL
GROUP BY corpus, contrast, benchmark, max_pmi_word
WINDOW of_benchmark AS (PARTITION BY corpus, contrast, benchmark)
QUALIFY max_pmi_word IS NOT NULL
    AND row_number() OVER (
        of_benchmark ORDER BY max_pmi_word IS NULL, n_pairs DESC, max_pmi_word
    ) <= 10
ORDER BY corpus, contrast, benchmark, n_pairs DESC, max_pmi_word;
