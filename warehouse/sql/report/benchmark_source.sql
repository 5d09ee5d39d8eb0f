-- grain: imported benchmark whose recipe names its source
SELECT
    benchmark,
    any_value(said) FILTER (fact = 'Source') AS source,
    any_value(said) FILTER (fact = 'Licence') AS licence,
    any_value(said) FILTER (fact = 'Language') AS language
FROM benchmark_fact
GROUP BY benchmark HAVING source IS NOT NULL ORDER BY benchmark;
