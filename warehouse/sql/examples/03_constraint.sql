-- grain: model_key x benchmark x groups x corpus x contrast x eta
-- What does the constraint on |MaxPMI| change?
-- gap is US of the pairs within eta minus US of all pairs, in percentage points: positive if the
-- model is fairer where the text is balanced. low and high are its 95% interval over clusters of
-- similar pairs. n_pairs is the number of pairs within eta. `plumbline measure --eta` adds more.
SELECT
    model, benchmark, groups, corpus, contrast, eta_nats, n AS n_pairs,
    round(100 * value, 2) AS gap,
    round(100 * value_low, 2) AS low,
    round(100 * value_high, 2) AS high
FROM metric_value
WHERE metric = 'gap' AND eta_nats IS NOT NULL
ORDER BY ALL;
