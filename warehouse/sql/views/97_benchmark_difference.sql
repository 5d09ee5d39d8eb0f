-- grain: reference x benchmark x measure x corpus x contrast x model_key
-- Benchmarks on the same seed words, such as those of two chat models, word by word: the mean over
-- the words that both have of benchmark minus reference, each word's figure from benchmark_word,
-- with Student's 95% interval over words, NULL below five words and where all words differ by as
-- much. direction says whether the benchmark's is lower (`fell`),
-- higher (`rose`) or `neither`. Name both in WHERE:
-- `FROM benchmark_difference() WHERE reference = 'a' AND benchmark = 'b'`.
CREATE OR REPLACE MACRO benchmark_difference(eta_limit := 0.65, epsilon := ln(1.65)) AS TABLE
WITH of_word AS (
    SELECT *, total / n AS figure FROM benchmark_word(eta_limit := eta_limit, epsilon := epsilon)
),
compared AS (
    SELECT
        r.benchmark AS reference, b.benchmark, b.measure, b.corpus, b.contrast, b.model_key,
        count(*) AS n_words,
        avg(r.figure ORDER BY b.word) AS reference_mean,
        avg(b.figure ORDER BY b.word) AS benchmark_mean,
        avg(b.figure - r.figure ORDER BY b.word) AS difference,
        student_half(b.figure - r.figure) AS half
    FROM of_word AS r
    JOIN of_word AS b
        ON b.word = r.word AND b.measure = r.measure AND b.benchmark <> r.benchmark
        AND b.corpus IS NOT DISTINCT FROM r.corpus
        AND b.contrast IS NOT DISTINCT FROM r.contrast
        AND b.model_key IS NOT DISTINCT FROM r.model_key
    GROUP BY ALL
)
SELECT
    reference, benchmark, measure, corpus, contrast, model_key, n_words, reference_mean,
    benchmark_mean, difference, difference - half AS difference_low,
    difference + half AS difference_high,
    direction_of(difference - half, difference + half) AS direction
FROM compared;
