-- grain: stage x subject x reason
-- Which input was rejected, and why?
-- What was counted, imported and scored, and what is listed here, add up to the input. place is the
-- first of the n rows, and excerpt its beginning.
SELECT
    stage, subject, reason, count(*) AS n,
    arg_min(source_file || ', row ' || source_row, (source_file, source_row)) AS place,
    arg_min(excerpt, (source_file, source_row)) AS excerpt
FROM reject
GROUP BY stage, subject, reason
ORDER BY n DESC, stage, subject, reason;
