-- grain: contrast of word_delta
-- A corpus has deltas for many contrasts. Fits and the report use those that constrain pairs, and
-- she/he; if the corpus has none of these, all contrasts.
CREATE OR REPLACE VIEW main_contrast AS
WITH found AS (
    SELECT
        contrast,
        contrast = 'she/he' OR contrast IN (SELECT contrast FROM pair_association) AS is_main
    FROM (SELECT DISTINCT contrast FROM word_delta)
)
SELECT contrast FROM found WHERE is_main OR NOT (SELECT bool_or(is_main) FROM found);
