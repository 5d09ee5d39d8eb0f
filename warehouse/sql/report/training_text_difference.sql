-- grain: as view training_text_difference, US over all pairs
FROM training_text_difference
WHERE measure = 'us' AND subset = 'all' ORDER BY training_text, benchmark, groups;
