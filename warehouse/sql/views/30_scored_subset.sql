-- grain: model_key x benchmark x groups x corpus x contrast x subset x pair_id
-- Every subset that metrics are reported for, e.g. `FROM scored_subset([0.5, 0.65])` for two limits
-- of |MaxPMI|. Each subset has a row for every pair that a model scored, so an empty subset has
-- rows too; `is_member` says whether the pair belongs to it. A benchmark has a subset for each
-- category of its pairs, for pairs that differ in their first word, and for all other pairs.
-- Repeated etas count once. Unconstrained subsets have an empty corpus and contrast.
CREATE OR REPLACE MACRO scored_subset(etas) AS TABLE
WITH eta AS (
    SELECT unnest(list_distinct(etas::DOUBLE[])) AS eta_nats
    UNION ALL
    SELECT NULL
),
pair AS (
    SELECT *, bool_or(contains(template, '{pronoun')) OVER (PARTITION BY benchmark, groups) AS has_pronoun
    FROM scored_pair
)
SELECT
    p.model_key, p.model, p.benchmark, p.groups, '' AS corpus, '' AS contrast, s.subset,
    NULL::DOUBLE AS eta_nats, p.pair_id, p.log_ratio_nats,
    (s.first_is IS NULL OR s.first_is = p.pronoun_first) AS is_member
FROM pair AS p
JOIN (
    VALUES
        ('all', NULL::BOOLEAN, NULL::BOOLEAN),
        ('pronoun first', true, true), ('pronoun later', false, true),
        ('first word differs', true, false), ('later word differs', false, false)
) AS s (subset, first_is, of_pronouns)
    ON s.of_pronouns IS NULL OR s.of_pronouns = p.has_pronoun
UNION ALL
SELECT
    p.model_key, p.model, p.benchmark, p.groups, '', '', 'category: ' || c.category, NULL,
    p.pair_id, p.log_ratio_nats, coalesce(p.category = c.category, false)
FROM scored_pair AS p
JOIN (SELECT DISTINCT benchmark, groups, category FROM scored_pair WHERE category IS NOT NULL) AS c
    USING (benchmark, groups)
UNION ALL
SELECT
    p.model_key, p.model, p.benchmark, p.groups, p.corpus, p.contrast,
    CASE
        WHEN e.eta_nats IS NULL THEN 'max_pmi defined'
        ELSE '|max_pmi| <= ' || e.eta_nats::VARCHAR
    END,
    e.eta_nats, p.pair_id, p.log_ratio_nats,
    p.max_pmi_nats IS NOT NULL
        AND (e.eta_nats IS NULL OR meets_constraint(p.max_pmi_nats, p.n_words_unknown, e.eta_nats))
FROM scored_pair_association AS p
CROSS JOIN eta AS e;
