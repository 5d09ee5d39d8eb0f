-- grain: benchmark, those of $benchmarks that have pairs made for a word
-- Seed words of each and how many of them the first one has, who wrote the pairs (a chat model, or
-- their source), and which facts of its making other than that and its account are not the first's.
WITH made AS (
    SELECT DISTINCT benchmark, lower(word) AS word
    FROM benchmark_pair
    WHERE word IS NOT NULL AND list_contains($benchmarks::VARCHAR[], benchmark)
),
counted AS (
    SELECT
        benchmark, count(*) AS n_words,
        count_if(word IN (SELECT word FROM made WHERE benchmark = $benchmarks[1])) AS n_shared
    FROM made
    GROUP BY benchmark
),
writer AS (
    SELECT b.benchmark, string_agg(DISTINCT coalesce(q.model, b.source_file), ', ') AS writers
    FROM benchmark_pair AS b
    LEFT JOIN generation_request AS q
        ON q.benchmark = b.benchmark AND q.request_id = b.source_file
    GROUP BY b.benchmark
),
fact AS (
    SELECT f.benchmark, f.fact, f.said, f.position
    FROM benchmark_fact AS f
    WHERE f.fact NOT IN ('Written by', 'Sentences', 'About', 'Source', 'Licence', 'Language', 'Citation')
),
other AS (
    SELECT f.benchmark, string_agg(f.fact || ' ' || f.said, '; ' ORDER BY f.position) AS options
    FROM fact AS f
    LEFT JOIN fact AS r ON r.benchmark = $benchmarks[1] AND r.fact = f.fact
    WHERE f.said IS DISTINCT FROM r.said
    GROUP BY f.benchmark
)
SELECT c.benchmark, c.n_words, c.n_shared, w.writers, coalesce(o.options, '') AS options
FROM counted AS c
JOIN writer AS w USING (benchmark)
LEFT JOIN other AS o USING (benchmark);
