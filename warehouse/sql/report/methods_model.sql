-- grain: model_key; about: its revision, and the corpus and seed of its training, where known
SELECT
    m.*,
    concat_ws(
        ', ',
        'revision ' || nullif(m.revision, ''),
        'trained on ' || t.corpus || ' with seed ' || t.seed
    ) AS about
FROM model AS m
LEFT JOIN trained_key AS t USING (model_key)
ORDER BY m.model, m.revision, m.model_key;
