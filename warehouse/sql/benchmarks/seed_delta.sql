-- grain: corpus x contrast, main contrasts for which any seed word of $benchmark has a delta
-- How far the seed words of a benchmark lean, each word once: all, and those that lean female
-- (delta above 0) and male (below 0). Pairs marked unnatural don't count, nor, unless $pair_ids is
-- NULL, pairs that are not in that list.
WITH seed AS (
    SELECT DISTINCT lower(word) AS word
    FROM benchmark_pair
    WHERE benchmark = $benchmark AND is_natural IS NOT FALSE
        AND ($pair_ids IS NULL OR pair_id IN (SELECT unnest($pair_ids::VARCHAR[])))
        AND word IS NOT NULL
)
SELECT
    d.corpus,
    d.contrast,
    count(*) AS n_defined,
    median(d.delta_nats) AS median_nats,
    max(abs(d.delta_nats)) AS largest_nats,
    count(*) FILTER (d.delta_nats > 0) AS n_female,
    count(*) FILTER (d.delta_nats < 0) AS n_male,
    median(d.delta_nats) FILTER (d.delta_nats > 0) AS median_female_nats,
    median(d.delta_nats) FILTER (d.delta_nats < 0) AS median_male_nats
FROM word_delta AS d
JOIN seed USING (word)
JOIN main_contrast USING (contrast)
GROUP BY d.corpus, d.contrast
ORDER BY d.corpus, d.contrast;
