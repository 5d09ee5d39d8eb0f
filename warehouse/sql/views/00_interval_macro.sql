-- grain: none, these are the functions that the views and metrics share
-- A macro's parameter also replaces every column of the same name, even in the views that the macro
-- reads, so give it a name that no column has.

-- Whether |x| is at most upper. Rounding may make equal sums of floats differ in their last bits,
-- so 1e-9 is tolerated, far less than the precision of any score.
CREATE OR REPLACE MACRO within(x, upper) AS abs(x) <= upper + 1e-9;

-- What the constraint |MaxPMI| <= eta does with a pair: `dropped` if a word leans more; `undecided`
-- if no word has a delta, or an unknown word might lean more; else `kept`. If the number of unknown
-- words is NULL (statistics without counts), it counts as 0.
CREATE OR REPLACE MACRO constraint_verdict(max_pmi, of_unknown, limit_nats) AS CASE
    WHEN NOT within(max_pmi, limit_nats) THEN 'dropped'
    WHEN max_pmi IS NULL OR of_unknown > 0 THEN 'undecided'
    ELSE 'kept'
END;
CREATE OR REPLACE MACRO meets_constraint(max_pmi, of_unknown, limit_nats) AS
    constraint_verdict(max_pmi, of_unknown, limit_nats) = 'kept';

-- A sum of decimals. Unlike a sum of floats, it does not depend on the order of the rows.
CREATE OR REPLACE MACRO exact_sum(x) AS sum(x::DECIMAL(38, 20))::DOUBLE;

-- The 97.5% points of the normal and of Student's t distribution. t975 is the expansion of Cornish
-- and Fisher in 1/df, with two more terms that fit 1 to 4 degrees of freedom. Its relative error is
-- below 1.1e-4 for every df >= 1, also fractional.
CREATE OR REPLACE MACRO z975() AS 1.959963984540054;
CREATE OR REPLACE MACRO t975(df) AS
    z975() + 2.3722712 / df + 2.8224986 / df ** 2 + 2.5558497 / df ** 3 + 1.5895340 / df ** 4
    + 0.92 / df ** 5 + 0.4860872 / df ** 7;

-- Whether n_of clusters (words, documents, prompts, models) are enough for an interval: at least
-- five. `LEAST_CLUSTERS` in warehouse/finding.py is the same number.
CREATE OR REPLACE MACRO is_enough(n_of) AS n_of >= 5;

-- The 97.5% point of Student's t for an error over n_of clusters; NULL below five.
CREATE OR REPLACE MACRO t_over(df, n_of) AS CASE WHEN is_enough(n_of) THEN t975(df) END;

-- Half the width of Student's 95% interval of a mean. NULL below five figures, and if all figures
-- are equal, since a few equal figures don't make a mean certain.
CREATE OR REPLACE MACRO student_half(figures) AS
    CASE WHEN stddev_samp(figures) > 1e-12 AND is_enough(count(figures))
        THEN t975(count(figures) - 1) * stddev_samp(figures) / sqrt(count(figures))
    END;

-- The largest possible change in US or PD, in percentage points; infinite for other measures.
CREATE OR REPLACE MACRO most_points(of_measure) AS
    CASE of_measure WHEN 'us' THEN 100 WHEN 'pd' THEN 200 ELSE 'infinity'::DOUBLE END;

-- One end of an interval: the mean plus the signed half width, limited to -reach and reach.
CREATE OR REPLACE MACRO end_within(mean_figure, half_width, reach) AS
    CASE WHEN half_width IS NOT NULL
        THEN greatest(-reach, least(reach, mean_figure + half_width))
    END;

-- Wilson's score interval of a share p of n rows. For an error from `clustered`, t_point is the
-- 97.5% point of Student's t, and n the equivalent number of independent rows. It contains p even
-- after rounding.
CREATE OR REPLACE MACRO wilson_half(p, n, t_point := z975()) AS
    t_point * sqrt(p * (1 - p) / n + t_point ** 2 / (4 * n * n)) / (1 + t_point ** 2 / n);
CREATE OR REPLACE MACRO wilson_centre(p, n, t_point := z975()) AS
    (p + t_point ** 2 / (2 * n)) / (1 + t_point ** 2 / n);
CREATE OR REPLACE MACRO wilson_low(p, n, t_point := z975()) AS CASE
    WHEN n > 0 AND t_point IS NOT NULL
        THEN greatest(0, least(p, wilson_centre(p, n, t_point) - wilson_half(p, n, t_point)))
END;
CREATE OR REPLACE MACRO wilson_high(p, n, t_point := z975()) AS CASE
    WHEN n > 0 AND t_point IS NOT NULL
        THEN least(1, greatest(p, wilson_centre(p, n, t_point) + wilson_half(p, n, t_point)))
END;

-- Student's point for a mean of skewed figures such as AuFC. A few clusters show too little of the
-- tail, so the interval is widened by the factor sqrt(1 + 1 / n_clusters).
CREATE OR REPLACE MACRO skewed_t(t_point, n_clusters) AS t_point * sqrt(1 + 1 / n_clusters);

-- Ends of the interval of a mean, from its standard error (`clustered`). If the mean has the limits
-- lowest and highest, the interval is Wilson's with at most n_rows independent rows, else
-- Student's. NULL if nothing varies and n_rows is infinite.
CREATE OR REPLACE MACRO range_n(mean_figure, error, lowest, highest, n_rows) AS least(
    if(error > 1e-9, (mean_figure - lowest) * (highest - mean_figure) / error ** 2, 'infinity'::DOUBLE),
    n_rows
);
CREATE OR REPLACE MACRO range_share(mean_figure, lowest, highest) AS
    (mean_figure - lowest) / (highest - lowest);
CREATE OR REPLACE MACRO mean_low(
    mean_figure, error, t_point, lowest := NULL, highest := NULL, n_rows := 'infinity'::DOUBLE
) AS CASE
    WHEN t_point IS NULL OR (isinf(n_rows) AND NOT error > 1e-9) THEN NULL
    WHEN lowest IS NULL OR highest IS NULL THEN mean_figure - t_point * error
    ELSE lowest + (highest - lowest) * wilson_low(
        range_share(mean_figure, lowest, highest),
        range_n(mean_figure, error, lowest, highest, n_rows), t_point
    )
END;
CREATE OR REPLACE MACRO mean_high(
    mean_figure, error, t_point, lowest := NULL, highest := NULL, n_rows := 'infinity'::DOUBLE
) AS CASE
    WHEN t_point IS NULL OR (isinf(n_rows) AND NOT error > 1e-9) THEN NULL
    WHEN lowest IS NULL OR highest IS NULL THEN mean_figure + t_point * error
    ELSE lowest + (highest - lowest) * wilson_high(
        range_share(mean_figure, lowest, highest),
        range_n(mean_figure, error, lowest, highest, n_rows), t_point
    )
END;

-- A bound of Fisher's z interval of a correlation r; offset_z is its signed distance from r on the
-- z scale. |r| = 1 has no finite z, so both bounds are then r.
CREATE OR REPLACE MACRO fisher_bound(r, offset_z) AS
    CASE WHEN abs(r) < 1 - 1e-12 THEN tanh(atanh(r) + offset_z) ELSE r END;

-- Bonett and Price's adjusted Wald interval of a difference of paired shares, such as PD / 100 or
-- the difference of two models' US. above and below are the two shares of n rows; one row is added
-- to each. t_point is a point of Student's t, negative for the lower end.
CREATE OR REPLACE MACRO bonett_price_centre(above, below, n) AS n * (above - below) / (n + 2);
CREATE OR REPLACE MACRO bonett_price_se(above, below, n) AS sqrt(
    ((n * (above + below) + 2) / (n + 2) - bonett_price_centre(above, below, n) ** 2) / (n + 2)
);
CREATE OR REPLACE MACRO bonett_price(above, below, n, t_point) AS CASE
    WHEN n > 0 AND t_point IS NOT NULL THEN greatest(-1, least(1,
        bonett_price_centre(above, below, n) + t_point * bonett_price_se(above, below, n)
    ))
END;
