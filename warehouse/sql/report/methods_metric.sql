-- grain: the rules by which a metric of a model and benchmark was computed
SELECT DISTINCT interval, metric, epsilon_nats, eta_nats, benchmark, model_key, corpus
FROM metric_value
ORDER BY interval, metric;
