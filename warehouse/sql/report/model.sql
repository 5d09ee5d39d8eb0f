-- grain: model_key
SELECT
    model_key, s.model, m.revision, m.backend, m.dtype, m.quantisation, m.adapter, m.text_form,
    coalesce(m.measure, 'log-likelihood') AS measure, m.bos_policy, m.n_parameters,
    m.family, t.corpus AS trained_on, t.seed, t.n_tokens, t.loss_start_nats, t.loss_end_nats
FROM (SELECT DISTINCT model_key, model FROM pair_score) AS s
LEFT JOIN model AS m USING (model_key)
LEFT JOIN trained_key AS t USING (model_key)
ORDER BY s.model, model_key;
