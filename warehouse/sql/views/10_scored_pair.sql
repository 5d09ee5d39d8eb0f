-- grain: model_key x benchmark x pair_id, natural pairs with a finite score
-- Pairs marked unnatural don't count. Scores that are not finite have no ratio.
CREATE OR REPLACE VIEW scored_pair AS
SELECT
    s.model_key,
    s.model,
    s.benchmark,
    s.pair_id,
    b.word,
    b.template,
    b.sentence_f,
    b.sentence_m,
    b.split,
    b.stereotype,
    b.pronoun_first,
    s.logprob_f_nats,
    s.logprob_m_nats,
    s.logprob_f_nats - s.logprob_m_nats AS log_ratio_nats
FROM pair_score AS s
JOIN benchmark_pair AS b USING (benchmark, pair_id)
WHERE b.is_natural IS NOT FALSE
    AND isfinite(s.logprob_f_nats)
    AND isfinite(s.logprob_m_nats);
