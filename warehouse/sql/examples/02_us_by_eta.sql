-- grain: benchmark x model x corpus x contrast x eta
-- How does the unstereotypical share change as the limit eta on |MaxPMI| tightens?
-- us_percent counts pairs whose two sentences are about as likely, among the n_pairs whose words
-- the text does not skew beyond eta. A model that only follows its text comes near 100 as eta goes
-- to 0. low and high bound it with 95% confidence; few pairs make them wide.
SELECT
    benchmark, model, corpus, contrast, eta_nats, n_pairs,
    round(100 * us, 1) AS us_percent,
    round(100 * us_low, 1) AS low,
    round(100 * us_high, 1) AS high
FROM us_curve([0.1, 0.2, 0.3, 0.4, 0.5, 0.65, 0.8, 1.0]);
