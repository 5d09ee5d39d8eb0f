-- grain: model_key x benchmark x corpus x contrast x subset
-- Unstereotypical share: pairs whose two sentences are about as likely, |log ratio| <= epsilon.
WITH counted AS (
    SELECT
        model_key, model, benchmark, corpus, contrast, subset, eta_nats,
        count(*) FILTER (is_member) AS n,
        count(*) FILTER (is_member AND within(log_ratio_nats, $epsilon_nats)) / nullif(n, 0) AS p
    FROM scored_subset($etas)
    GROUP BY ALL
)
SELECT
    'us' AS metric, model_key, model, benchmark, corpus, contrast, subset, eta_nats,
    $epsilon_nats::DOUBLE AS epsilon_nats,
    p AS value,
    'share' AS unit,
    sqrt(p * (1 - p) / n) AS sd,
    wilson_low(p, n) AS ci_low,
    wilson_high(p, n) AS ci_high,
    'Wilson 95%' AS interval,
    n,
    '{}' AS options
FROM counted;
