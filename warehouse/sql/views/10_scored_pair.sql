-- grain: model_key x benchmark x pair_id, natural pairs with a finite score
-- Both scores of each pair, and their log ratio (a minus b). Pairs marked unnatural are left out,
-- and pairs with a score that is not finite.
CREATE OR REPLACE VIEW scored_pair AS
SELECT
    model_key, model, benchmark, pair_id, group_a || '/' || group_b AS groups, item_id, word,
    template, sentence_a, sentence_b, split, stereotype, category, direction, weight,
    pronoun_first, logprob_a_nats, logprob_b_nats,
    logprob_a_nats - logprob_b_nats AS log_ratio_nats
FROM pair_score
JOIN benchmark_pair USING (benchmark, pair_id)
WHERE is_natural IS NOT FALSE AND isfinite(logprob_a_nats) AND isfinite(logprob_b_nats);
