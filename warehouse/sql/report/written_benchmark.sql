-- grain: benchmark with pairs whose source is $source
SELECT DISTINCT benchmark FROM benchmark_pair WHERE source_file = $source ORDER BY benchmark;
