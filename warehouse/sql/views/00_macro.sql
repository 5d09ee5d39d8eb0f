-- grain: none, these are the functions that the views and metrics share
-- A macro's parameter also replaces every column of its name, even in the views that the macro
-- reads: give it a name that no column has.

-- Two figures that are equal on paper may differ in the last bits once they are sums of floats, so
-- a limit is inclusive with a tolerance far below the precision of any score (1e-9 nats).
CREATE OR REPLACE MACRO within(x, upper) AS abs(x) <= upper + 1e-9;

-- Upper 97.5% points of the normal and of Student's t distribution. The second is the expansion of
-- Cornish and Fisher in 1/df with two terms that make it right for 1 to 4 degrees of freedom, also
-- fractional ones: relative error below 1.1e-4 from df = 1.
CREATE OR REPLACE MACRO z975() AS 1.959963984540054;
CREATE OR REPLACE MACRO t975(df) AS
    z975() + 2.3722712 / df + 2.8224986 / df ** 2 + 2.5558497 / df ** 3 + 1.5895340 / df ** 4
    + 0.92 / df ** 5 + 0.4860872 / df ** 7;

-- Upper 5% point of chi-squared: exact for one or two degrees of freedom, else Wilson and Hilferty's
-- (relative error 0.5% at three, less from there).
CREATE OR REPLACE MACRO chi2_95(df) AS CASE
    WHEN df = 1 THEN z975() ** 2
    WHEN df = 2 THEN -2 * ln(0.05)
    ELSE df * (1 - 2 / (9 * df) + 1.6448536269514722 * sqrt(2 / (9 * df))) ** 3
END;

-- Half the width of Student's 95% interval of a mean; NULL below two figures, and where they are all
-- equal: an interval of no width would be certain of what a few equal figures don't show.
CREATE OR REPLACE MACRO student_half(figures) AS
    CASE WHEN stddev_samp(figures) > 1e-12
        THEN t975(count(figures) - 1) * stddev_samp(figures) / sqrt(count(figures))
    END;
-- The largest change that there can be of a measure in percentage points; others have none.
CREATE OR REPLACE MACRO most_points(of_measure) AS
    CASE of_measure WHEN 'us' THEN 100 WHEN 'pd' THEN 200 ELSE 'infinity'::DOUBLE END;
-- An end of an interval, of the mean and the signed half width, within -reach and reach.
CREATE OR REPLACE MACRO end_within(mean_figure, half_width, reach) AS
    CASE WHEN half_width IS NOT NULL
        THEN greatest(-reach, least(reach, mean_figure + half_width))
    END;

-- Wilson's score interval of a share p of n. It contains p, even after rounding.
CREATE OR REPLACE MACRO wilson_half(p, n) AS
    z975() * sqrt(p * (1 - p) / n + z975() ** 2 / (4 * n * n)) / (1 + z975() ** 2 / n);
CREATE OR REPLACE MACRO wilson_centre(p, n) AS
    (p + z975() ** 2 / (2 * n)) / (1 + z975() ** 2 / n);
CREATE OR REPLACE MACRO wilson_low(p, n) AS
    CASE WHEN n > 0 THEN greatest(0, least(p, wilson_centre(p, n) - wilson_half(p, n))) END;
CREATE OR REPLACE MACRO wilson_high(p, n) AS
    CASE WHEN n > 0 THEN least(1, greatest(p, wilson_centre(p, n) + wilson_half(p, n))) END;

-- Ends of the 95% interval of a measure of disclosure, the mean of n_of prompts: Wilson's of the
-- shares gas, gas_f and gas_m, else Student's by student_half, within what the measure can be.
CREATE OR REPLACE MACRO disclosure_low(of_measure, mean_figure, n_of, half_width) AS CASE
    WHEN of_measure IN ('gas', 'gas_f', 'gas_m') THEN wilson_low(mean_figure, n_of)
    WHEN half_width IS NOT NULL THEN greatest(mean_figure - half_width, 0)
END;
CREATE OR REPLACE MACRO disclosure_high(of_measure, mean_figure, n_of, half_width) AS CASE
    WHEN of_measure IN ('gas', 'gas_f', 'gas_m') THEN wilson_high(mean_figure, n_of)
    WHEN of_measure NOT IN ('gld', 'p_gendered') THEN mean_figure + half_width
    WHEN half_width IS NOT NULL THEN least(mean_figure + half_width, 1)
END;

-- A bound of Fisher's z interval of a correlation r; offset_z is its signed distance on the z
-- scale. |r| = 1 has no finite z and keeps a zero-width interval.
CREATE OR REPLACE MACRO fisher_bound(r, offset_z) AS
    CASE WHEN abs(r) < 1 - 1e-12 THEN tanh(atanh(r) + offset_z) ELSE r END;

-- Bonett and Price's adjusted Wald bound of a difference of paired shares, (n_a - n_b) / n, in
-- percentage points: one pair is added to each side. offset_z is a point of the normal, signed.
CREATE OR REPLACE MACRO pd_bound(n_a, n_b, n, offset_z) AS CASE
    WHEN n > 0 THEN 100 * greatest(-1, least(1,
        (n_a - n_b) / (n + 2)
        + offset_z * sqrt((n_a + n_b + 2) / (n + 2) - ((n_a - n_b) / (n + 2)) ** 2) / sqrt(n + 2)
    ))
END;
