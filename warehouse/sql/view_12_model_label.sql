-- grain: model_key
-- What to call a scoring identity where names are shown: its model, and whatever sets it apart from
-- the plain one. Released scores are told apart only from other scores of the same model.
CREATE OR REPLACE VIEW model_label AS
SELECT
    model_key,
    model || coalesce(' (' || nullif(concat_ws(', ',
        'adapter ' || split_part(adapter, '@', 1),
        coalesce(nullif(split_part(quantisation, ' ', 2), ''), quantisation),
        CASE
            WHEN text_form = 'released' AND backend <> 'released' THEN 'released text form'
            WHEN backend = 'released' AND count(*) OVER (PARTITION BY model) > 1
                THEN 'released scores'
        END
    ), '') || ')', '') AS label
FROM model;
