-- grain: tuning
SELECT * FROM tuning ORDER BY tuning;
