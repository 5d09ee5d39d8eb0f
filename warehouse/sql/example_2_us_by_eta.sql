-- grain: benchmark x model x corpus x contrast x subset
-- How does the unstereotypical share move as the limit eta on |MaxPMI| tightens? Try other etas.
SELECT
    benchmark, model, corpus, contrast, subset,
    count(*) FILTER (is_member) AS n_pairs,
    round(
        100 * avg(within(log_ratio_nats, ln(1.65))::INTEGER) FILTER (is_member), 1
    ) AS us_percent
FROM scored_subset([0.3, 0.5, 0.65, 0.8, 1.0])
GROUP BY benchmark, model, model_key, corpus, contrast, subset, eta_nats
ORDER BY benchmark, model, model_key, corpus, contrast, eta_nats, subset;
