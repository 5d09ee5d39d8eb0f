-- grain: model_key
-- What to call a scoring identity where names are shown: its model and whatever sets it apart from
-- the plain one; dtype and backend where scores of the same model differ in them. Where that is not
-- enough (revisions, versions, other weights of the same name) its key says which it is.
CREATE OR REPLACE VIEW model_label AS
WITH counted AS (
    SELECT
        *,
        count(*) OVER same_model AS n_identities,
        count(DISTINCT CASE WHEN backend <> 'released' THEN dtype END) OVER same_model AS own_dtypes,
        count(DISTINCT nullif(backend, 'released')) OVER same_model AS own_backends
    FROM model
    WINDOW same_model AS (PARTITION BY model)
),

said AS (
    SELECT
        model_key,
        model,
        [
            'adapter ' || split_part(adapter, '@', 1),
            coalesce(nullif(split_part(quantisation, ' ', 2), ''), quantisation),
            CASE
                WHEN text_form = 'released' AND backend <> 'released' THEN 'released text form'
                WHEN backend = 'released' AND n_identities > 1 THEN 'released scores'
            END,
            CASE WHEN own_dtypes > 1 AND backend <> 'released' THEN dtype END,
            CASE WHEN own_backends > 1 AND backend <> 'released' THEN backend END
        ] AS parts
    FROM counted
),

told AS (
    SELECT *, count(*) OVER (PARTITION BY model, array_to_string(parts, ', ')) > 1 AS is_shared
    FROM said
)

SELECT
    model_key,
    model || coalesce(' (' || nullif(
        array_to_string(
            list_filter(
                list_append(parts, CASE WHEN is_shared THEN 'key ' || left(model_key, 6) END),
                lambda part: part IS NOT NULL
            ),
            ', '
        ),
        ''
    ) || ')', '') AS label
FROM told;
