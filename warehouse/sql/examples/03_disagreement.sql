-- grain: model_key x benchmark x pair_id x corpus x contrast, the first twenty
-- Where do a model and the corpus disagree?
-- Pairs whose strongest word leans one way in the text while the model prefers the other pronoun,
-- the strongest contradictions first. That word's co-occurrences can't explain the model's
-- preference.
SELECT
    model, benchmark, corpus, max_pmi_word,
    round(max_pmi_nats, 2) AS max_pmi_nats,
    round(log_ratio_nats, 2) AS log_ratio_nats,
    template
FROM scored_pair_association
WHERE max_pmi_nats * log_ratio_nats < 0
ORDER BY least(abs(max_pmi_nats), abs(log_ratio_nats)) DESC, model_key, benchmark, pair_id
LIMIT 20;
