-- grain: corpus x contrast x benchmark x word, ten per benchmark
-- Which words decide MaxPMI?
-- Each pair's MaxPMI is the lean of one of its words. percent is the share of pairs that a word
-- decides: when a few words decide most, the benchmark is about these words.
SELECT
    corpus, contrast, benchmark, word, n_pairs,
    round(100 * share, 1) AS percent,
    round(mean_max_pmi_nats, 2) AS max_pmi_nats
FROM deciding_word
QUALIFY row_number() OVER (
    PARTITION BY corpus, contrast, benchmark ORDER BY n_pairs DESC, word
) <= 10
ORDER BY corpus, contrast, benchmark, n_pairs DESC, word;
