-- grain: model_key
-- Models that are compared with each other: those that score log-likelihoods, except adapters,
-- quantised models, earlier training steps, n-gram models, and older versions of named models.
CREATE OR REPLACE VIEW plain_model AS
FROM model
WHERE adapter IS NULL AND quantisation IS NULL AND step IS NULL
    AND coalesce(measure, 'log-likelihood') = 'log-likelihood'
    AND backend <> 'ngram'
    AND model_key NOT IN (SELECT model_key FROM model_version WHERE NOT is_latest);
