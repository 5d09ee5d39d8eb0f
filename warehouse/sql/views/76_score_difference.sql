-- grain: model_key of ours x benchmark x pair_id, pairs that we and the release scored
-- Our scores of a model minus the imported released ones, in nats. With text_form = 'released' only
-- the computation differs, otherwise the text form as well. Models with an adapter are left out.
CREATE OR REPLACE VIEW score_difference AS
SELECT
    o.model,
    o.model_key,
    m.text_form,
    o.benchmark,
    o.pair_id,
    o.logprob_f_nats - r.logprob_f_nats AS difference_f_nats,
    o.logprob_m_nats - r.logprob_m_nats AS difference_m_nats,
    difference_f_nats - difference_m_nats AS difference_log_ratio_nats,
    o.n_tokens_f - r.n_tokens_f AS difference_tokens_f,
    o.n_tokens_m - r.n_tokens_m AS difference_tokens_m
FROM pair_score AS o
JOIN model AS m ON m.model_key = o.model_key AND m.backend <> 'released' AND m.adapter IS NULL
JOIN model AS released ON released.model = o.model AND released.backend = 'released'
JOIN pair_score AS r
    ON r.model_key = released.model_key AND r.benchmark = o.benchmark AND r.pair_id = o.pair_id;
