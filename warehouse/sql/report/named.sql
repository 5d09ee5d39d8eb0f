-- grain: option x key: what a report can be narrowed to, with the name to show
-- Sets of prompts are listed as benchmarks.
SELECT 'benchmark' AS option, benchmark AS key, benchmark AS name
FROM (
    SELECT benchmark FROM pair_score
    UNION SELECT benchmark FROM metric_value
    UNION SELECT probe_set FROM probe_prompt
)
WHERE benchmark <> ''
UNION ALL
SELECT 'model', model_key, label FROM model_label
WHERE model_key NOT IN (SELECT model_key FROM model_version WHERE NOT is_latest)
UNION ALL
SELECT 'corpus', corpus, corpus
FROM (
    SELECT corpus FROM corpus
    UNION SELECT corpus FROM word_delta
    UNION SELECT corpus FROM metric_value
)
WHERE corpus <> ''
ORDER BY option, name, key;
