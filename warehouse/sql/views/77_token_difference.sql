-- grain: model_key x benchmark x pair_id x position, pairs scored with `--per-token`
-- What the tokens at each position add to a pair's log ratio: their log-probability in the female
-- sentence minus that in the male one, in nats; the positions of a pair sum to its log ratio. If
-- both sentences have as many tokens (is_aligned), a position has the same word in both, or the
-- pronouns.
CREATE OR REPLACE VIEW token_difference AS
SELECT
    model_key,
    m.model,
    benchmark,
    pair_id,
    position,
    f.token AS token_f,
    o.token AS token_m,
    coalesce(f.logprob_nats::DOUBLE, 0) - coalesce(o.logprob_nats::DOUBLE, 0) AS difference_nats,
    count(f.token) OVER pair = count(o.token) OVER pair AS is_aligned
FROM (FROM token_logprob WHERE side = 'f') AS f
FULL JOIN (FROM token_logprob WHERE side = 'm') AS o
    USING (model_key, benchmark, pair_id, position)
JOIN model AS m USING (model_key)
WINDOW pair AS (PARTITION BY model_key, benchmark, pair_id);
