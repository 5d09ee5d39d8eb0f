-- grain: corpus x contrast, how many words lean clearly to either side
-- n_one_sided words are near one side only; n_chance is how many would look clear if no word leaned;
-- n_corrected are clear with q below 5%.
SELECT
    corpus, contrast, count(*) AS n_words, count(lean_nats_low) AS n_known,
    count(*) FILTER (lean_nats_low > 0) AS n_first,
    count(*) FILTER (lean_nats_high < 0) AS n_second,
    count(*) FILTER (is_one_sided) AS n_one_sided,
    coalesce(sum(chance_clear ORDER BY word) FILTER (lean_nats_low IS NOT NULL), 0) AS n_chance,
    count(*) FILTER (q < 0.05) AS n_corrected,
    count(q) AS n_tested,
    max(clusters) AS clusters
FROM listed_lean SEMI JOIN shown_contrast USING (corpus, contrast)
GROUP BY ALL
ORDER BY ALL;
