-- grain: as benchmark_power
FROM benchmark_power ORDER BY benchmark, groups, measure;
