-- grain: model_key
-- Scoring identities of models that Plumbline trained, with the text they were trained on. Scores
-- of an earlier model of the same name have another revision and are left out.
CREATE OR REPLACE VIEW trained_key AS
SELECT m.model_key, t.* FROM model AS m JOIN trained_model AS t USING (model, revision);
