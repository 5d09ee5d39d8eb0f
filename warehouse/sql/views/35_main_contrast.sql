-- grain: contrast of word_delta
-- The contrasts that fits and the report use: those that pairs were constrained by, and she/he. If
-- no corpus has a delta for any of these, all contrasts.
CREATE OR REPLACE VIEW main_contrast AS
WITH found AS (
    SELECT
        contrast,
        contrast = 'she/he' OR contrast IN (SELECT contrast FROM pair_association) AS is_main
    FROM (SELECT DISTINCT contrast FROM word_delta)
)
SELECT contrast FROM found WHERE is_main OR NOT (SELECT bool_or(is_main) FROM found);
