-- grain: benchmark x pair_id x two models, the first twenty
-- Where do two models disagree?
-- Pairs of which one model prefers the female and another the male sentence, both by more than
-- ln 1.65; the firmest disagreements first. The text is the same, so the models make the difference.
SELECT
    a.benchmark,
    a.model AS model_a,
    b.model AS model_b,
    round(a.log_ratio_nats, 2) AS log_ratio_a,
    round(b.log_ratio_nats, 2) AS log_ratio_b,
    a.template
FROM scored_pair AS a
JOIN scored_pair AS b
    ON b.benchmark = a.benchmark AND b.pair_id = a.pair_id AND b.model_key > a.model_key
WHERE lean(a.log_ratio_nats) * lean(b.log_ratio_nats) = -1
ORDER BY
    least(abs(a.log_ratio_nats), abs(b.log_ratio_nats)) DESC,
    a.benchmark, a.pair_id, a.model_key, b.model_key
LIMIT 20;
