-- grain: model x benchmark x eta, the four of UnStereoEval: infinity, 0.8, 0.65, 0.5
-- US, gap and PD in percent as in Tables 1-18, and AuFC over log ratios to base 10 as in Table 19.
-- `ratio` has the rows of released_ratio.sql.
WITH figure AS (
    SELECT
        model, family, benchmark, eta,
        count(*) AS n,
        100 * avg(within(log_ratio_nats, ln(1.65))::INTEGER) AS us,
        100 * avg(lean(log_ratio_nats)) AS pd,
        aufc(log_ratio_nats / ln(10)) AS aufc
    FROM ratio, (SELECT unnest(['infinity'::DOUBLE, 0.8, 0.65, 0.5]) AS eta)
    WHERE isinf(eta) OR within(max_pmi_nats, eta)
    GROUP BY ALL
)
SELECT
    *,
    regexp_matches(model, '-deduped$') AS is_deduped,
    us - max(us) FILTER (isinf(eta)) OVER (PARTITION BY model, benchmark) AS gap,
    100 * n / max(n) OVER (PARTITION BY model, benchmark) AS percent_left
FROM figure;
