-- grain: model_key
-- Scoring identities of models that Plumbline trained, with the text they were trained on. Scores
-- of an earlier model of the same name have another revision and are left out. Scores with an
-- adapter have the name and revision of its base.
CREATE OR REPLACE VIEW trained_key AS
SELECT m.model_key, t.*
FROM model AS m
JOIN trained_model AS t ON CASE
    WHEN t.adapter IS NULL THEN (m.model, m.revision) = (t.model, t.revision)
    ELSE (m.model, m.revision, m.adapter) = (t.base, t.base_revision, t.adapter)
END;
