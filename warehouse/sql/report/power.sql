-- grain: as benchmark_power, with the smallest effect and the standard deviation in points
SELECT
    *, if(unit = 'share', 100, 1) * smallest AS smallest_points,
    if(unit = 'share', 100, 1) * sd AS sd_points
FROM benchmark_power ORDER BY benchmark, groups, measure;
