-- grain: probe_set x model_key that was tuned
-- How many prompts of a set an adapter was, or may have been, tuned on. If it was tuned on the set
-- or chosen by it, all prompts count. In another set, the prompts that are also in such a set
-- count, unless tuning left that set's prompts out (`as_published` leaves none out). Adapters that
-- were not tuned here have no rows, since their training is unknown.
CREATE OR REPLACE VIEW tuned_prompt AS
WITH tuned AS (
    SELECT
        m.model_key,
        string_split(concat_ws(', ', t.probe_sets, t.dev_sets), ', ') AS tuned_sets,
        CASE WHEN t.as_published THEN [] ELSE string_split(t.test_sets, ', ') END AS held_out_sets
    FROM model AS m
    JOIN tuning AS t USING (adapter)
),
seen AS (
    SELECT DISTINCT t.model_key, plain_prompt(p.prompt) AS plain
    FROM tuned AS t
    JOIN probe_prompt AS p ON list_contains(t.tuned_sets, p.probe_set)
)
SELECT
    t.model_key, p.probe_set,
    count(*) AS n_prompts,
    count(*) FILTER (
        list_contains(t.tuned_sets, p.probe_set)
        OR (NOT list_contains(t.held_out_sets, p.probe_set) AND s.plain IS NOT NULL)
    ) AS n_tuned_on
FROM tuned AS t
CROSS JOIN probe_prompt AS p
LEFT JOIN seen AS s ON s.model_key = t.model_key AND s.plain = plain_prompt(p.prompt)
GROUP BY ALL;
