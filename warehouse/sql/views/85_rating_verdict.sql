-- grain: benchmark x design, of ratings of a question `natural` and a verdict on the same pairs
-- People beside the chat model or source: pairs that are natural to both, to one, to neither, by
-- the majority of raters; n_tied have as many yes as no and count in none. Cohen's kappa is 1 for
-- full agreement, 0 for agreement by chance, NULL where either side has one verdict for all. If
-- pairs were drawn from those that metrics use, none of them is unnatural to the model.
CREATE OR REPLACE VIEW rating_verdict AS
WITH counted AS (
    SELECT
        benchmark, design,
        count(by_majority) AS n_pairs,
        count(*) FILTER (by_majority AND is_natural) AS n_both,
        count(*) FILTER (NOT by_majority AND is_natural) AS n_model_only,
        count(*) FILTER (by_majority AND NOT is_natural) AS n_people_only,
        count(*) FILTER (NOT by_majority AND NOT is_natural) AS n_neither,
        count(*) FILTER (by_majority IS NULL) AS n_tied
    FROM rated_pair
    WHERE question = 'natural' AND is_natural IS NOT NULL
    GROUP BY ALL
),
expected AS (
    SELECT
        *,
        (n_both + n_neither) / n_pairs AS agreed,
        (
            (n_both + n_model_only) * (n_both + n_people_only)
            + (n_neither + n_people_only) * (n_neither + n_model_only)
        ) / n_pairs ** 2 AS by_chance
    FROM counted
)
SELECT
    benchmark, design, n_pairs, n_both, n_model_only, n_people_only, n_neither, n_tied,
    CASE
        WHEN n_pairs NOT IN (n_both + n_model_only, n_both + n_people_only)
            AND 0 NOT IN (n_both + n_model_only, n_both + n_people_only)
            THEN (agreed - by_chance) / (1 - by_chance)
    END AS kappa
FROM expected;
