-- grain: stage x subject x reason, with the first place as an example
SELECT
    stage, subject, reason, count(*) AS n,
    arg_min(source_file || ', row ' || source_row, (source_file, source_row)) AS example
FROM reject
GROUP BY stage, subject, reason
ORDER BY stage, subject, n DESC, reason;
