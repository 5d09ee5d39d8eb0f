-- grain: model_key x benchmark x groups x item_id x group_name, items scored in full
-- Every group of an item (`groups`, such as `she/he/they`) with the log-probability of its
-- sentence. A group is preferred if no other is more likely by more than epsilon. `share` is 1
-- divided by the number of preferred sentences (0 for others), so an item's shares sum to 1.
-- `is_even`: all are preferred, so the most and the least likely differ by at most epsilon. E.g.
-- `FROM group_preference(ln(1.65))`, for items of least_groups or more. Items with unnatural or
-- unscored pairs are left out.
CREATE OR REPLACE MACRO group_preference(most_nats, least_groups := 2) AS TABLE
WITH paired AS (
    SELECT *
    FROM benchmark_pair
    QUALIFY count(*) OVER (PARTITION BY benchmark, item_id) >= least_groups * (least_groups - 1) / 2
),
scored AS (
    SELECT
        m.model_key, m.model, b.benchmark, b.item_id, b.category, b.group_a, b.group_b,
        s.logprob_a_nats, s.logprob_b_nats,
        s.logprob_a_nats IS NOT NULL AND b.is_natural IS NOT FALSE AND isfinite(s.logprob_a_nats)
            AND isfinite(s.logprob_b_nats) AS is_scored
    FROM (SELECT DISTINCT benchmark, model_key, model FROM pair_score) AS m
    JOIN paired AS b USING (benchmark)
    LEFT JOIN pair_score AS s USING (benchmark, pair_id, model_key)
),
complete AS (
    SELECT *
    FROM scored
    QUALIFY bool_and(is_scored) OVER (PARTITION BY benchmark, item_id, model_key)
),
-- In the order of its pairs: a group is second in as many pairs as there are groups before it.
sided AS (
    SELECT *, group_a AS group_name, logprob_a_nats AS logprob_nats, 0 AS n_second FROM complete
    UNION ALL
    SELECT *, group_b, logprob_b_nats, 1 FROM complete
),
grouped AS (
    SELECT
        model_key, model, benchmark, item_id, any_value(category) AS category, group_name,
        any_value(logprob_nats) AS logprob_nats, sum(n_second) AS n_before
    FROM sided
    GROUP BY model_key, model, benchmark, item_id, group_name
),
ranked AS (
    SELECT
        *,
        max(logprob_nats) OVER item - logprob_nats AS behind_nats,
        count(*) OVER item AS n_groups
    FROM grouped
    WINDOW item AS (PARTITION BY model_key, benchmark, item_id)
),
named AS (
    SELECT
        model_key, benchmark, item_id,
        string_agg(group_name, '/' ORDER BY n_before, group_name) AS groups
    FROM grouped
    GROUP BY ALL
),
near AS (
    SELECT *, within(behind_nats, most_nats) AS is_preferred
    FROM ranked JOIN named USING (model_key, benchmark, item_id)
)
SELECT
    model_key, model, benchmark, groups, item_id, category, group_name, n_before AS position,
    logprob_nats, n_groups,
    is_preferred,
    is_preferred::INTEGER / sum(is_preferred::INTEGER) OVER item AS share,
    bool_and(is_preferred) OVER item AS is_even
FROM near
WINDOW item AS (PARTITION BY model_key, benchmark, item_id);
