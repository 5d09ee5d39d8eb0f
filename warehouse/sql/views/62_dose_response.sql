-- grain: study x kind x benchmark x groups x corpus x contrast x words x outcome
-- How the models answer to the dose: the least-squares slope of `lean` over doses of each seed, and
-- the mean over seeds with Student's 95% interval, NULL below two seeds. The interval is over
-- trainings on this text with these documents changed: it covers no other text. Where a text's leans
-- are learned with slope b, exchanging she and he in all documents makes it -b: the response of
-- outcome `slope` is then -2b. `lean_at_0` is the mean lean without a dose. `size_bound`, in `unit`
-- like the response, is the smallest bound of its size that the seeds support (two one-sided tests at
-- 5%), and `share_bound` the same of its share of the response of kind `gender`; NULL where a seed
-- lacks that one, or its own 90% interval contains 0.
CREATE OR REPLACE VIEW dose_response AS
WITH of_seed AS (
    SELECT
        study, kind, benchmark, groups, corpus, contrast, words, outcome, seed,
        count(DISTINCT dose) AS n_doses,
        regr_slope(lean, dose ORDER BY dose) AS response,
        avg(lean) FILTER (dose = 0) AS lean_at_0
    FROM intervention_lean
    WHERE window_start = 0 AND window_end = 1
    GROUP BY ALL
    HAVING n_doses > 1
),
beside AS (
    SELECT s.*, g.response AS exchanged
    FROM of_seed AS s
    LEFT JOIN of_seed AS g
        ON s.kind <> 'gender' AND g.kind = 'gender'
        AND (s.study, s.benchmark, s.groups, s.corpus, s.contrast, s.words, s.outcome, s.seed)
            = (g.study, g.benchmark, g.groups, g.corpus, g.contrast, g.words, g.outcome, g.seed)
)
SELECT
    study, kind, benchmark, groups, corpus, contrast, words, outcome,
    CASE outcome WHEN 'slope' THEN 'nats per nat' ELSE 'nats' END AS unit,
    avg(response ORDER BY seed) AS response,
    avg(response ORDER BY seed) - student_half(response, least := 2) AS response_low,
    avg(response ORDER BY seed) + student_half(response, least := 2) AS response_high,
    size_bound(response) AS size_bound,
    CASE WHEN count(exchanged) = count(*) THEN quotient_bound(response, exchanged) END AS share_bound,
    avg(lean_at_0 ORDER BY seed) AS lean_at_0,
    count(*) AS n_seeds,
    max(n_doses) AS n_doses
FROM beside
GROUP BY ALL;
