-- grain: benchmark x groups x model_key, quantiles of the pairs' log ratios
SELECT
    benchmark, groups, model_key, model, count(*) AS n,
    quantile_cont(log_ratio_nats, 0.05) AS q5_nats,
    quantile_cont(log_ratio_nats, 0.25) AS q25_nats,
    quantile_cont(log_ratio_nats, 0.5) AS q50_nats,
    quantile_cont(log_ratio_nats, 0.75) AS q75_nats,
    quantile_cont(log_ratio_nats, 0.95) AS q95_nats
FROM scored_pair
GROUP BY ALL
ORDER BY ALL;
