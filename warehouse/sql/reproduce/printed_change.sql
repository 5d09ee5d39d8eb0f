-- grain: two figures of `printed` that differ in one of inputs, method and model
-- How a figure changes from one cell to another: old and new name what differs, before and after are
-- the figures. inputs, method and model are those of the first cell. way is the kind of change, such
-- as `larger`; prompts is the kind of inputs. `printed` has one value for each cell, with its place.
WITH pair AS (
    SELECT
        a.*, b.place AS new_place, b.value AS after,
        CASE
            WHEN a.method <> b.method
                THEN (a.method, b.method, concat_ws(', ', a.metric, a.inputs, a.model))
            WHEN a.inputs <> b.inputs
                THEN (a.inputs, b.inputs, concat_ws(', ', a.metric, nullif(a.method, 'Original'), a.model))
            ELSE (a.model, b.model, concat_ws(', ', a.metric, a.inputs, nullif(a.method, 'Original')))
        END AS names,
        a.method = b.method AND a.method <> 'Original' AS is_treated
    FROM printed AS a
    JOIN printed AS b
        ON a.metric = b.metric
        AND (a.inputs <> b.inputs)::INT + (a.method <> b.method)::INT + (a.model <> b.model)::INT = 1
)
SELECT
    metric, inputs, method, model, value AS before, after, names[1] AS old, names[2] AS new,
    CASE
        WHEN is_treated THEN 'between treated'
        WHEN (old, new) IN (('LLAMA2 7B', 'LLAMA2 13B'), ('LLAMA2 7B-CHAT', 'LLAMA2 13B-CHAT'))
            THEN 'larger'
        WHEN old IN ('LLAMA2 7B', 'LLAMA2 13B') AND new = old || '-CHAT' THEN 'aligned'
        ELSE old || ' to ' || new
    END AS way,
    CASE
        WHEN inputs IN ('STS-B', 'SNLI') THEN 'natural'
        WHEN inputs IN ('LLM (1)', 'LLM (2)') THEN 'written'
        ELSE 'template'
    END AS prompts,
    format('{}, {} to {}: {:g} to {:g}', names[3], old, new, before, after) AS what
FROM pair
ORDER BY
    min(place) OVER (PARTITION BY names[1]), min(new_place) OVER (PARTITION BY names[2]), place;
