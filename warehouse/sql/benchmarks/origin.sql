-- grain: benchmark, the one named $benchmark
-- Where its pairs come from: files, or chat models (NULL for files) with n_requests requests.
-- n_unused: number of rows in the files, or written sentences, that are in no pair.
WITH source AS (
    SELECT DISTINCT p.source_file, r.model
    FROM benchmark_pair AS p
    LEFT JOIN generation_request AS r
        ON r.benchmark = p.benchmark AND r.request_id = p.source_file
    WHERE p.benchmark = $benchmark
),
origin AS (
    SELECT
        string_agg(DISTINCT source_file, ', ' ORDER BY source_file) AS files,
        CASE
            WHEN count(*) = count(model) THEN string_agg(DISTINCT model, ', ' ORDER BY model)
        END AS models
    FROM source
)
SELECT
    *,
    (SELECT count(*) FROM generation_request WHERE benchmark = $benchmark) AS n_requests,
    (
        SELECT count(*) FROM reject
        WHERE CASE
            WHEN models IS NULL THEN stage = 'benchmark' AND subject = $benchmark
            ELSE stage = 'generate' AND subject IN ($benchmark || '/write', $benchmark || '/pair')
        END
    ) AS n_unused
FROM origin;
