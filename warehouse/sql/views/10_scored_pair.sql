-- grain: model_key x benchmark x pair_id, natural pairs with a finite score
-- Pairs marked unnatural don't count. Scores that are not finite have no ratio. Where groups differ by
-- content words, baseline_log_ratio_nats is that of these words in a neutral sentence; NULL for pairs
-- without a baseline, or one that the model can't score. above_baseline_nats is the difference.
CREATE OR REPLACE VIEW scored_pair AS
SELECT
    s.model_key,
    s.model,
    s.benchmark,
    s.pair_id,
    b.group_a || '/' || b.group_b AS groups,
    b.item_id,
    b.word,
    b.template,
    b.sentence_a,
    b.sentence_b,
    b.split,
    b.stereotype,
    b.category,
    b.direction,
    b.weight,
    b.pronoun_first,
    s.logprob_a_nats,
    s.logprob_b_nats,
    s.logprob_a_nats - s.logprob_b_nats AS log_ratio_nats,
    CASE
        WHEN isfinite(s.baseline_logprob_a_nats) AND isfinite(s.baseline_logprob_b_nats)
            THEN s.baseline_logprob_a_nats - s.baseline_logprob_b_nats
    END AS baseline_log_ratio_nats,
    log_ratio_nats - baseline_log_ratio_nats AS above_baseline_nats
FROM pair_score AS s
JOIN benchmark_pair AS b USING (benchmark, pair_id)
WHERE b.is_natural IS NOT FALSE
    AND isfinite(s.logprob_a_nats)
    AND isfinite(s.logprob_b_nats);
