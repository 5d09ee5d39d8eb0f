-- grain: model_key x benchmark x pair_id, natural pairs with a finite score
-- Pairs marked unnatural are left out, and so are scores that are not finite. If groups differ by
-- content words, baseline_log_ratio_nats is these words' log ratio in a neutral sentence; NULL for
-- pairs without a baseline that the model can score. above_baseline_nats is the difference.
CREATE OR REPLACE VIEW scored_pair AS
SELECT
    model_key, model, benchmark, pair_id, group_a || '/' || group_b AS groups, item_id, word,
    template, sentence_a, sentence_b, split, stereotype, category, direction, weight,
    pronoun_first, logprob_a_nats, logprob_b_nats,
    logprob_a_nats - logprob_b_nats AS log_ratio_nats,
    CASE
        WHEN isfinite(baseline_logprob_a_nats) AND isfinite(baseline_logprob_b_nats)
            THEN baseline_logprob_a_nats - baseline_logprob_b_nats
    END AS baseline_log_ratio_nats,
    log_ratio_nats - baseline_log_ratio_nats AS above_baseline_nats
FROM pair_score
JOIN benchmark_pair USING (benchmark, pair_id)
WHERE is_natural IS NOT FALSE AND isfinite(logprob_a_nats) AND isfinite(logprob_b_nats);
