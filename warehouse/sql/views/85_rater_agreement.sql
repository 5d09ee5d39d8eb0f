-- grain: benchmark x design x question x rater
-- Raters who answer unlike the others: the share of a rater's answers that are yes, and the share
-- of all other answers to the same pairs that equal the rater's (NULL without any). alpha_without
-- is alpha without the rater, NULL below three raters. is_unlike: alpha is higher without the
-- rater; the 95% interval of the gain, adjusted for the number of raters, lies above 0. NULL
-- without one.
CREATE OR REPLACE VIEW rater_agreement AS
WITH compared AS (
    SELECT
        a.benchmark, a.design, a.question, a.rater,
        count(*) AS n_compared,
        avg((a.answer_level = b.answer_level)::INT) AS equal_share
    FROM rating AS a
    JOIN rating AS b USING (benchmark, question, pair_id)
    WHERE a.rater <> b.rater AND a.design IS NOT DISTINCT FROM b.design
    GROUP BY ALL
),
own AS (
    SELECT
        benchmark, design, question, rater,
        count(*) AS n_answers, avg(is_yes::INT) AS yes_share
    FROM rating
    GROUP BY ALL
)
SELECT
    o.benchmark, o.design, o.question, o.rater, o.n_answers, o.yes_share,
    coalesce(c.n_compared, 0) AS n_compared, c.equal_share,
    t.alpha AS alpha_of_all, w.alpha AS alpha_without,
    w.gain_low > 0 AS is_unlike
FROM own AS o
LEFT JOIN compared AS c
    ON c.benchmark = o.benchmark AND c.design IS NOT DISTINCT FROM o.design
    AND c.question = o.question AND c.rater = o.rater
LEFT JOIN rating_agreement AS t
    ON t.benchmark = o.benchmark AND t.design IS NOT DISTINCT FROM o.design
    AND t.question = o.question AND t.without_rater = ''
LEFT JOIN rating_agreement AS w
    ON w.benchmark = o.benchmark AND w.design IS NOT DISTINCT FROM o.design
    AND w.question = o.question AND w.without_rater = o.rater;
