-- grain: own model_key x benchmark x pair_id, for pairs that the release also scored
-- Our scores of a model minus its released scores, in nats. If text_form is 'released', both scored
-- the same texts and only the computation differs. Models with an adapter are left out.
CREATE OR REPLACE VIEW score_difference AS
SELECT
    o.model,
    o.model_key,
    m.text_form,
    o.benchmark,
    o.pair_id,
    o.logprob_a_nats - r.logprob_a_nats AS difference_a_nats,
    o.logprob_b_nats - r.logprob_b_nats AS difference_b_nats,
    difference_a_nats - difference_b_nats AS difference_log_ratio_nats,
    o.n_tokens_a - r.n_tokens_a AS difference_tokens_a,
    o.n_tokens_b - r.n_tokens_b AS difference_tokens_b
FROM pair_score AS o
JOIN model AS m ON m.model_key = o.model_key AND m.backend <> 'released' AND m.adapter IS NULL
JOIN model AS released ON released.model = o.model AND released.backend = 'released'
JOIN pair_score AS r
    ON r.model_key = released.model_key AND r.benchmark = o.benchmark AND r.pair_id = o.pair_id;
