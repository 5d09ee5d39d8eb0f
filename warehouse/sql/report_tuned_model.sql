-- grain: tuning x identity of the tuned model x identity of its base, both scored alike
SELECT t.tuning, tuned.model_key AS tuned_key, base.model_key AS base_key
FROM tuning AS t
JOIN model AS tuned
    ON tuned.adapter = t.adapter AND tuned.model = t.base AND tuned.revision = t.base_revision
JOIN model AS base
    ON base.adapter IS NULL AND base.model = tuned.model AND base.revision = tuned.revision
    -- With an adapter the versions end with that of PEFT.
    AND base.backend = tuned.backend
    AND starts_with(tuned.backend_version || ', ', base.backend_version || ', ')
    AND base.dtype = tuned.dtype AND base.bos_policy = tuned.bos_policy
    AND base.bos_token_id = tuned.bos_token_id AND base.text_form = tuned.text_form
    AND base.quantisation IS NOT DISTINCT FROM tuned.quantisation
ORDER BY t.tuning, tuned.model_key;
