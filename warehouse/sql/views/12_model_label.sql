-- grain: model_key
-- The name to show for a scoring identity. If the user named the model, it is that name, with the
-- date if a later version exists. Otherwise it is the model and whatever distinguishes it from the
-- plain model, such as its measure. Dtype and backend are added if scores of the same model differ
-- in them. If two identities would still share a name, the start of the key is added.
CREATE OR REPLACE VIEW model_label AS
WITH counted AS (
    SELECT
        *,
        coalesce(name, model) AS shown,
        count(*) OVER same_model AS n_identities,
        count(DISTINCT CASE WHEN backend <> 'released' THEN dtype END) OVER same_model AS own_dtypes,
        count(DISTINCT nullif(backend, 'released')) OVER same_model AS own_backends
    FROM model
    LEFT JOIN (SELECT model_key, is_latest, scored_at FROM model_version) USING (model_key)
    WINDOW same_model AS (PARTITION BY coalesce(name, model))
),
identity AS (
    SELECT
        model_key,
        shown,
        CASE
            WHEN is_latest THEN []
            WHEN name IS NOT NULL THEN [strftime(scored_at, '%Y-%m-%d')]
            ELSE [
                'step ' || step,
                'adapter ' || split_part(adapter, '@', 1),
                coalesce(nullif(split_part(quantisation, ' ', 2), ''), quantisation),
                CASE
                    WHEN text_form = 'released' AND backend <> 'released' THEN 'released text form'
                    WHEN backend = 'released' AND n_identities > 1 THEN 'released scores'
                END,
                CASE
                    WHEN measure = 'log-likelihood given an empty input' THEN 'encoder-decoder'
                    ELSE nullif(measure, 'log-likelihood')
                END,
                CASE WHEN own_dtypes > 1 AND backend <> 'released' THEN dtype END,
                CASE WHEN own_backends > 1 AND backend <> 'released' THEN backend END
            ]
        END AS parts
    FROM counted
),
labelled AS (
    SELECT *, count(*) OVER (PARTITION BY shown, array_to_string(parts, ', ')) > 1 AS is_shared
    FROM identity
)
SELECT
    model_key,
    shown || coalesce(' (' || nullif(
        array_to_string(
            list_filter(
                list_append(parts, CASE WHEN is_shared THEN 'key ' || left(model_key, 6) END),
                lambda part: part IS NOT NULL
            ),
            ', '
        ),
        ''
    ) || ')', '') AS label
FROM labelled;
