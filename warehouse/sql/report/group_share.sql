-- grain: benchmark x groups x model_key x group_name, items of more than two groups
-- Mean share of preferred sentences by group, in the order of the groups, with a 95% interval over the
-- clusters of the items' pairs.
WITH figure AS (
    SELECT
        {
            'benchmark': p.benchmark, 'groups': groups, 'model_key': model_key, 'model': model,
            'group_name': group_name, 'n_groups': n_groups, 'position': position
        } AS subject,
        cluster_1, cluster_2, stratum, share AS numerator, 1 AS denominator
    FROM group_preference($epsilon, least_groups := 3) AS p
    JOIN (
        SELECT benchmark, item_id, min(pair_id) AS pair_id FROM benchmark_pair GROUP BY ALL
    ) USING (benchmark, item_id)
    JOIN pair_cell USING (benchmark, pair_id)
    WHERE n_groups > 2
)
SELECT
    subject.* EXCLUDE (position), n, value, mean_low(value, se, t, 0, 1, n_most) AS value_low,
    mean_high(value, se, t, 0, 1, n_most) AS value_high
FROM clustered('figure')
ORDER BY
    subject.benchmark, subject.groups, subject.model, subject.model_key, subject.position;
