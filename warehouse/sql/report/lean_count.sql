-- grain: corpus x contrast, how many words lean clearly to either side
-- n_all counts all words, the other columns only words that pages rank (is_ranked).
-- n_known: with an interval; n_tested: with q; n_one_sided: near one side only; n_corrected: q < 5%.
SELECT
    corpus, contrast, count(*) AS n_all, count(*) FILTER (is_ranked) AS n_words,
    count(delta_nats_low) FILTER (is_ranked) AS n_known,
    count(*) FILTER (is_ranked AND delta_nats_low > 0) AS n_first,
    count(*) FILTER (is_ranked AND delta_nats_high < 0) AS n_second,
    count(*) FILTER (is_ranked AND least(n_pair_f, n_pair_m) = 0) AS n_one_sided,
    count(*) FILTER (is_ranked AND q < 0.05) AS n_corrected,
    count(q) FILTER (is_ranked) AS n_tested,
    max(over) FILTER (is_ranked) AS over
FROM word_lean SEMI JOIN shown_contrast USING (corpus, contrast)
GROUP BY ALL
ORDER BY ALL;
