-- grain: model_key x benchmark x pair_id x position, pairs scored with `--per-token`
-- What the tokens at each position add to a pair's log ratio: their log-probability in sentence
-- a minus that in sentence b, in nats. Summed over positions, they give the log ratio. If both
-- sentences have the same number of tokens (is_aligned), a position has the same word in both, or
-- the words that differ.
CREATE OR REPLACE VIEW token_difference AS
SELECT
    model_key, m.model, benchmark, pair_id, position, a.token AS token_a, b.token AS token_b,
    coalesce(a.logprob_nats::DOUBLE, 0) - coalesce(b.logprob_nats::DOUBLE, 0) AS difference_nats,
    count(a.token) OVER pair = count(b.token) OVER pair AS is_aligned
FROM (FROM token_logprob WHERE side = 'a') AS a
FULL JOIN (FROM token_logprob WHERE side = 'b') AS b
    USING (model_key, benchmark, pair_id, position)
JOIN model AS m USING (model_key)
WINDOW pair AS (PARTITION BY model_key, benchmark, pair_id);
