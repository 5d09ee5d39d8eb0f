-- grain: model_key x benchmark x groups x subset, all items or those of a category
-- Even share and divergence over the groups of items, for two or more groups, e.g. `FROM
-- group_share(ln(1.65))`. `even_share` is the share of items without a preference between any two
-- of their sentences; for two groups it is US. `divergence` is the total variation distance of the
-- groups' mean shares from an even share 1 / k, divided by its largest value (k - 1) / k: 0 if
-- every group is preferred as often, 1 if one always is; for two groups it is |PD| / 100. Intervals
-- are over clusters of the items' pairs (`clustered`): Wilson's for even_share. Divergence is a sum
-- of mean shares with signs; Scheffe's factor covers all other signs, as it has no slope at 0. If
-- nothing varies, its error is that of one more item for each group.
CREATE OR REPLACE MACRO group_share(most_nats, least_groups := 2) AS TABLE
WITH preference AS (FROM group_preference(most_nats, least_groups := least_groups)),
celled AS (
    SELECT
        p.*, c.cluster_1, c.cluster_2, c.stratum,
        unnest(['all', 'category: ' || category]) AS subset
    FROM preference AS p
    JOIN (
        SELECT benchmark, item_id, min(pair_id) AS pair_id FROM benchmark_pair GROUP BY ALL
    ) USING (benchmark, item_id)
    JOIN pair_cell AS c USING (benchmark, pair_id)
),
member AS (
    SELECT
        *,
        avg(share) OVER of_group - 1 / n_groups AS off,
        -- a group whose share is even adds 0 to the distance, but its spread to the error
        if(abs(off) > 1e-12, sign(off), if(position % 2 = 0, 1, -1)) AS side,
        n_groups / (2 * (n_groups - 1)) AS scale
    FROM celled
    WHERE subset IS NOT NULL
    WINDOW of_group AS (PARTITION BY model_key, benchmark, groups, subset, group_name)
),
item AS (
    SELECT
        {
            'model_key': model_key, 'model': model, 'benchmark': benchmark, 'groups': groups,
            'subset': subset, 'n_groups': n_groups
        } AS subject,
        item_id, cluster_1, cluster_2, stratum, 1 AS denominator,
        sum(side * (share - 1 / n_groups) * scale ORDER BY position) AS numerator,
        bool_and(is_even) AS is_even
    FROM member
    GROUP BY ALL
),
even AS (SELECT * REPLACE (is_even::INTEGER AS numerator) FROM item),
found AS (
    SELECT
        unnest(e.subject), e.n, e.value AS even_share, e.n_star AS even_n, e.t, e.n_clusters, e.df,
        e.cluster_values,
        round(d.value, 12) AS divergence,  -- even groups add up to 0 but for the last bits
        -- of as many items as n_most at this distance, and one more for each group
        e.subject.n_groups AS k,
        if(isinf(d.n_most), 0, sqrt(
            (d.n_most * d.value ** 2 + k / (k - 1) - (d.n_most * d.value) ** 2 / (d.n_most + k))
            / (d.n_most + k - 1) / (d.n_most + k)
        )) AS least_se,
        greatest(d.se, least_se) AS se
    FROM clustered('even') AS e
    JOIN clustered('item') AS d USING (subject)
)
SELECT
    *, wilson_low(even_share, even_n, t) AS even_share_low,
    wilson_high(even_share, even_n, t) AS even_share_high,
    -- Scheffe's factor, wider by what Student's t is for an error that is estimated
    sqrt(chi2_95(n_groups - 1)) * t / z975() * se AS half
FROM found;
