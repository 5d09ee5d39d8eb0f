-- grain: corpus x contrast, how many words lean clearly to either side
SELECT
    corpus, contrast, count(*) AS n_words, count(delta_low_nats) AS n_known,
    count(*) FILTER (delta_low_nats > 0) AS n_first,
    count(*) FILTER (delta_high_nats < 0) AS n_second,
    max(clusters) AS clusters
FROM listed_lean
WHERE contrast IN (FROM main_contrast)
GROUP BY ALL
ORDER BY ALL;
