-- grain: model_key x benchmark, those with pairs that a judge and the model have a verdict on
-- Judge and model side by side: a pair is natural to the model when its sides differ by at most the
-- limit, in nats per token. Of `n_pairs`, `n_neither` are unnatural to both and `n_both` natural to
-- both. Cohen's `kappa` is 1 for full agreement, 0 for agreement by chance, NULL where undefined.
-- `auc` needs no limit: how often a pair that the judge dropped differs more than one it kept (ties
-- count half); 0.5 is chance, NULL where one kind is missing.
CREATE OR REPLACE MACRO opinion_agreement(most_nats) AS TABLE
WITH verdict AS (
    SELECT
        model_key, model, benchmark, is_likely,
        abs(difference_nats) <= most_nats AS is_near,
        rank() OVER sized + (count(*) OVER same_size - 1) / 2 AS mean_rank
    FROM pair_naturalness
    WHERE is_likely IS NOT NULL AND difference_nats IS NOT NULL
    WINDOW
        sized AS (PARTITION BY model_key, benchmark ORDER BY abs(difference_nats)),
        same_size AS (PARTITION BY model_key, benchmark, abs(difference_nats))
),
counted AS (
    SELECT
        model_key, model, benchmark,
        count(*) AS n_pairs,
        count(*) FILTER (is_likely AND is_near) AS n_both,
        count(*) FILTER (is_likely AND NOT is_near) AS n_judge_only,
        count(*) FILTER (NOT is_likely AND is_near) AS n_model_only,
        count(*) FILTER (NOT is_likely AND NOT is_near) AS n_neither,
        sum(mean_rank) FILTER (NOT is_likely) AS ranks
    FROM verdict
    GROUP BY ALL
),
expected AS (
    SELECT
        *,
        n_both + n_judge_only AS n_likely,
        n_pairs - n_likely AS n_unlikely,
        (n_both + n_neither) / n_pairs AS agreed,
        (n_likely * (n_both + n_model_only) + n_unlikely * (n_judge_only + n_neither)) / n_pairs ** 2
            AS by_chance
    FROM counted
)
SELECT
    model_key, model, benchmark, n_pairs, n_both, n_judge_only, n_model_only, n_neither,
    CASE WHEN by_chance < 1 THEN (agreed - by_chance) / (1 - by_chance) END AS kappa,
    (ranks - n_unlikely * (n_unlikely + 1) / 2) / nullif(n_likely * n_unlikely, 0) AS auc
FROM expected
ORDER BY benchmark, model, model_key;
