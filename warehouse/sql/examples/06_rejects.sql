-- grain: stage x subject x reason
-- Which input was rejected, and why?
-- All input was either counted, imported or scored, or is listed here. place is the first of n
-- rows, excerpt its start.
SELECT
    stage, subject, reason, count(*) AS n,
    arg_min(source_file || ', row ' || source_row, (source_file, source_row)) AS place,
    arg_min(excerpt, (source_file, source_row)) AS excerpt
FROM reject
GROUP BY stage, subject, reason
ORDER BY n DESC, stage, subject, reason;
