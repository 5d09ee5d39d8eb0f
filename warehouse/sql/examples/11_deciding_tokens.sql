-- grain: model x benchmark x token of each sentence, the first twenty
-- Which tokens make the difference between the two sentences?
-- Tokens at the same position of the female and the male sentence, by how much they change log
-- ratios in total: the pronouns themselves, and the words that a model finds likelier after one
-- than after the other. Needs scores made with --per-token; mean_difference is in nats, above 0
-- towards female.
SELECT
    model, benchmark, token_a, token_b,
    count(*) AS n,
    round(avg(difference_nats), 2) AS mean_difference,
    round(avg(abs(difference_nats)), 2) AS mean_size
FROM token_difference
WHERE is_aligned
GROUP BY ALL
ORDER BY sum(abs(difference_nats)) DESC, model, benchmark, token_a, token_b
LIMIT 20;
