-- grain: corpus x benchmark
-- Corpora in a language other than a benchmark's. Words spelled alike in two languages mean
-- different things, so such pairs are not fitted on such a corpus. Pairs made from a language file
-- (`fr-pairs`) have its language. Other pairs have the language of the corpora that they were
-- constrained by, or English if there is none.
CREATE OR REPLACE VIEW foreign_corpus AS
WITH spoken AS (SELECT corpus, coalesce("language", 'en') AS code FROM corpus),
made AS (
    SELECT DISTINCT benchmark, regexp_extract(source_file, '^(?:warehouse/languages/)?([^/]+)\.toml$', 1) AS code
    FROM benchmark_pair
),
known AS (
    SELECT benchmark, code FROM made WHERE code <> ''
    UNION
    SELECT a.benchmark, s.code FROM (SELECT DISTINCT benchmark, corpus FROM pair_association) AS a
    JOIN spoken AS s USING (corpus)
    WHERE a.benchmark IN (SELECT benchmark FROM made WHERE code = '')
),
spoken_by AS (
    SELECT m.benchmark, coalesce(k.code, 'en') AS code
    FROM (SELECT DISTINCT benchmark FROM made) AS m LEFT JOIN known AS k USING (benchmark)
)
SELECT s.corpus, b.benchmark
FROM spoken AS s CROSS JOIN spoken_by AS b
GROUP BY ALL
HAVING NOT bool_or(s.code = b.code);
