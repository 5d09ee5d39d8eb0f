-- grain: benchmark x question x rater
-- How each rater's answers compare with the others'. yes_share is the share of yes among a rater's
-- answers. equal_share is the share of others' answers to the same pairs that are equal; NULL
-- without any.
CREATE OR REPLACE VIEW rater_agreement AS
WITH compared AS (
    SELECT
        a.benchmark, a.question, a.rater,
        count(*) AS n_compared,
        avg((a.answer_level = b.answer_level)::INT) AS equal_share
    FROM rating AS a
    JOIN rating AS b USING (benchmark, question, pair_id)
    WHERE a.rater <> b.rater
    GROUP BY ALL
),
own AS (
    SELECT benchmark, question, rater, count(*) AS n_answers, avg(is_yes::INT) AS yes_share
    FROM rating
    GROUP BY ALL
)
SELECT
    benchmark, question, rater, n_answers, yes_share,
    coalesce(n_compared, 0) AS n_compared, equal_share
FROM own
LEFT JOIN compared USING (benchmark, question, rater);
