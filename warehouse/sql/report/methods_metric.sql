-- grain: metric x model_key x benchmark x corpus x method of the interval, with its thresholds
SELECT DISTINCT interval, metric, epsilon_nats, eta_nats, benchmark, model_key, corpus
FROM metric_value
ORDER BY interval, metric;
