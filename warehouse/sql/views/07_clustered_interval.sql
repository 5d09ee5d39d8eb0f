-- grain: subject
-- Estimate a ratio of sums and its error from rows that are similar within clusters. Most intervals
-- come from this macro. `figures` names a view, table or CTE with these columns. subject: what the
-- figure is about, of any type, such as a struct of keys. cluster_1, cluster_2: clusters of similar
-- rows. cluster_2 is NULL for all rows of a subject without a second kind; if it is NULL for some
-- rows, they are in no cluster of that kind. stratum: rows are only compared within a stratum; NULL
-- if there is only one. numerator, denominator: the value is sum(numerator) / sum(denominator);
-- both are 0 for a row outside the subject. An example: `WITH f AS (SELECT model AS subject, ...
-- FROM scored_pair) FROM clustered('f')`.
--
-- Each cluster adds the sum of its rows' influences, divided by 1 minus its share of the
-- denominators (CR3, the jackknife over clusters). With one kind of cluster the variance is the sum
-- of squares. With two kinds it is the largest of three variances: one for each kind, and the
-- squares of all clusters minus the squares of all pairs of clusters. If the kinds have different
-- names, the third is the two-way variance of Cameron, Gelbach and Miller (2011). If they share
-- names, such as occupations in either place, it is the dyadic variance of Aronow, Samii and
-- Assenova (2015). A kind with one cluster is ignored. See `python -m tools.simulations` for
-- coverage.
--
-- n, value, se   number of rows of the subject, the value and its standard error
-- df, t          degrees of freedom, and the 97.5% point of Student's t. df is Satterthwaite's: the
--                number of clusters minus 1 if their sizes are equal, else less. Of two kinds, the
--                smaller df is used; it is halved if some cluster is of both kinds. t is NULL
--                unless one kind has five clusters and the other, if any, three
-- n_clusters     number of clusters of the kind that has fewer
-- n_most         largest n_star, for numerators -1, 0 or 1. If fewer than ten clusters (and not
--                all) contain an exception to the commonest numerator, the error itself is
--                uncertain. n_most is then the number of clusters, or less if their sizes differ;
--                else infinite
-- n_star         for such numerators: number of independent rows with this error, at most n_most
-- share_above, share_below   shares of rows with a numerator above and below 0
-- cluster_values if t is NULL: the value of each cluster of the kind that has fewer, as JSON
CREATE OR REPLACE MACRO clustered(figures) AS TABLE
WITH cell AS (
    SELECT
        hash(subject) AS about, subject,
        any_value(cluster_1) AS cluster_1, any_value(cluster_2) AS cluster_2,
        any_value(stratum) AS stratum,
        exact_sum(numerator) AS x,
        exact_sum(denominator) AS w,
        count(*) FILTER (denominator > 0) AS n,
        count(*) FILTER (numerator > 0) AS n_above,
        count(*) FILTER (numerator < 0) AS n_below
    FROM query_table(figures)
    GROUP BY subject, hash(cluster_1, cluster_2, stratum)
),
total AS (
    SELECT
        about, any_value(subject) AS subject,
        exact_sum(x) AS sum_x, exact_sum(w) AS sum_w, sum(n)::BIGINT AS n_all,
        sum(n_above)::BIGINT AS above, sum(n_below)::BIGINT AS below,
        bool_or(cluster_2 IS NOT NULL AND n > 0) AS has_two
    FROM cell
    GROUP BY about
),
rated AS (
    SELECT about, stratum, exact_sum(x) / nullif(exact_sum(w), 0) AS rate
    FROM cell
    GROUP BY ALL
),
influence AS (
    SELECT
        c.about, c.cluster_1, c.cluster_2, c.x - coalesce(rate, 0) * c.w AS u,
        c.x, c.w, c.n, c.n_above, c.n_below
    FROM cell AS c
    JOIN rated AS r ON r.about = c.about AND r.stratum IS NOT DISTINCT FROM c.stratum
    WHERE n > 0
),
-- kinds 1 and 2: clusters of the first and second kind; 3: all clusters; 4: pairs of clusters
placed AS (
    SELECT 1 AS kind, cluster_1 AS id, * FROM influence
    UNION ALL
    SELECT 2, cluster_2, * FROM influence WHERE cluster_2 IS NOT NULL
    UNION ALL
    SELECT 3, unnest(list_distinct([cluster_1, cluster_2])), *
    FROM influence WHERE about IN (SELECT about FROM total WHERE has_two)
    UNION ALL
    SELECT 4, least(cluster_1, cluster_2) || chr(31) || greatest(cluster_1, cluster_2), *
    FROM influence WHERE cluster_1 <> cluster_2
),
summed AS (
    SELECT
        about, kind, any_value(id) AS id,
        exact_sum(u) AS u, exact_sum(x) AS x, exact_sum(w) AS w,
        sum(n)::BIGINT AS n, sum(n_above)::BIGINT AS n_above, sum(n_below)::BIGINT AS n_below
    FROM placed
    GROUP BY about, kind, hash(id)
),
term AS (
    SELECT
        about, kind, id, n, x / w AS value,
        w / sum_w AS share,
        -- a cluster that holds everything has no influence
        if(w < sum_w, u / (sum_w - w), 0) AS influence,
        w / nullif(sum_w - w, 0) AS ratio,
        -- for each commonest sign of rows (above 0, below 0, 0): whether the cluster has another
        greatest(above, below, n_all - above - below) AS most,
        if(above = most, n_above < n, true) AS not_above,
        if(below = most, n_below < n, true) AS not_below,
        if(n_all - above - below = most, n_above + n_below > 0, true) AS not_even
    FROM summed
    JOIN total USING (about)
),
of_kind AS (
    SELECT
        about, kind,
        count(*) AS n_clusters,
        exact_sum(influence ** 2) AS squares,
        least(
            count(*) FILTER (not_above), count(*) FILTER (not_below), count(*) FILTER (not_even)
        ) AS n_exceptional,
        exact_sum(share ** 2) AS q,
        -- `squares` is a quadratic form M of independent rows: df is trace(M)^2 / trace(M^2)
        exact_sum(ratio) ** 2
            / (exact_sum(ratio ** 2) ** 2 + exact_sum(ratio ** 2 - ratio ** 4)) AS df
    FROM term
    GROUP BY about, kind
),
valued AS (
    SELECT
        t.about, t.kind,
        to_json(list({'cluster': id, 'value': value, 'n': n} ORDER BY id)) AS of_clusters
    FROM term AS t
    JOIN of_kind AS k ON k.about = t.about AND k.kind = t.kind
    WHERE k.kind < 3 AND NOT is_enough(k.n_clusters)
    GROUP BY ALL
),
joined AS (
    SELECT
        about,
        min(n_clusters) FILTER (is_used) AS n_clusters,
        max(n_clusters) FILTER (is_used) AS n_large,
        -- if a cluster is of both kinds, terms share rows and say half as much about the error
        min(df) FILTER (is_used)
            / if(max(n_clusters) FILTER (kind = 3) < sum(n_clusters) FILTER (is_used), 2, 1) AS df,
        max(1 / q) FILTER (is_used) AS n_equal,
        max(n_exceptional) FILTER (is_used) AS n_exceptional,
        greatest(
            max(squares) FILTER (is_used),
            max(squares) FILTER (kind = 3) - coalesce(max(squares) FILTER (kind = 4), 0)
        ) AS variance,
        arg_min(of_clusters, 4 * n_clusters + kind) FILTER (kind < 3) AS of_clusters
    FROM (
        SELECT *, kind < 3 AND n_clusters > 1 AS is_used
        FROM of_kind LEFT JOIN valued USING (about, kind)
    )
    GROUP BY about
)
SELECT
    subject, n_all AS n, sum_x / nullif(sum_w, 0) AS value, sqrt(variance) AS se, df,
    CASE WHEN n_clusters >= 3 THEN t_over(df, n_large) END AS t,
    coalesce(n_clusters, least(n_all, 1)) AS n_clusters,
    above / n_all AS share_above, below / n_all AS share_below,
    if(
        variance > 1e-18 AND n_exceptional >= least(10, n_large), 'infinity'::DOUBLE, n_equal
    ) AS n_most,
    least(
        if(
            variance > 1e-18,
            (share_above + share_below - (share_above - share_below) ** 2) / variance,
            'infinity'::DOUBLE
        ),
        n_most
    ) AS n_star,
    if(t IS NULL, of_clusters, NULL) AS cluster_values
FROM total
LEFT JOIN joined USING (about);
