-- grain: as benchmark_power, of $benchmark, with the smallest effect in points
SELECT *, if(unit = 'share', 100, 1) * smallest AS smallest_points
FROM benchmark_power
WHERE benchmark = $benchmark
ORDER BY groups, measure;
