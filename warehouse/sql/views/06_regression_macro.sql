-- grain: none, aggregates that views of fitted lines share
-- Errors of fitted lines are HC3 (MacKinnon and White 1985): each point's influence is divided by
-- 1 - h, where h is its leverage. Points may then scatter unequally, and a point that draws the line
-- towards itself doesn't make the error too small. If h = 1, the point alone decides: NULL.

-- Whether a contrast is between the groups of a benchmark, so that a slope on its leans can say that
-- a model follows a text. '' is the contrast of planted leans.
CREATE OR REPLACE MACRO is_between(of_contrast, of_groups) AS
    of_contrast = of_groups OR (
        of_groups IN ('female/male', 'she/he') AND of_contrast NOT IN (
            SELECT groups FROM metric_value WHERE groups NOT IN ('female/male', 'she/he', '')
        )
    );

-- Whether a contrast or the groups of a benchmark are two pronouns.
CREATE OR REPLACE MACRO are_pronouns(of_pair) AS
    regexp_full_match(of_pair, '(she|he|they|xe|ze|ey)/(she|he|they|xe|ze|ey)');

-- Whether preferences between the groups of a benchmark are fitted on the leans of a contrast. Not
-- if the groups are two pronouns and the contrast is between others. '' is the contrast of planted
-- leans, which are between she and he.
CREATE OR REPLACE MACRO is_fitted(of_contrast, of_groups) AS
    of_contrast = of_groups OR NOT are_pronouns(of_groups)
    OR (of_groups = 'she/he' AND NOT are_pronouns(of_contrast));

-- Leverage of a point in a fit of n_of points. of_x is its distance from their mean, of_sxx the sum
-- of the squares of all these distances.
CREATE OR REPLACE MACRO leverage(of_x, of_sxx, n_of) AS 1 / n_of + of_x ** 2 / of_sxx;

-- The sum over points of the product of two influences, each divided by 1 - h. It is a covariance,
-- or a variance if both influences are the same.
CREATE OR REPLACE MACRO hc3_sum(influence_a, influence_b, of_leverage, in_order) AS
    CASE WHEN max(of_leverage) < 1 - 1e-9
        THEN sum(influence_a * influence_b / (1 - of_leverage) ** 2 ORDER BY in_order)
    END;

-- The weight of a point's squared residual in the HC3 variance of a slope, up to a factor.
CREATE OR REPLACE MACRO hc3_share(of_x, of_leverage) AS (of_x / (1 - of_leverage)) ** 2;

-- Degrees of freedom of the HC3 variance of a slope (Bell and McCaffrey 2002). By Satterthwaite's
-- approximation, they are those of a chi-squared with the mean and variance that the HC3 variance
-- has if all points scatter equally. Below n - 2 if a few points have most leverage.
CREATE OR REPLACE MACRO hc3_df(of_x, of_leverage, of_sxx, n_of, in_order) AS
    CASE WHEN max(of_leverage) < 1 - 1e-9
        THEN sum(hc3_share(of_x, of_leverage) * (1 - of_leverage) ORDER BY in_order) ** 2 / (
            sum(hc3_share(of_x, of_leverage) ** 2 * (1 - 2 * of_leverage) ORDER BY in_order)
            + sum(hc3_share(of_x, of_leverage) ORDER BY in_order) ** 2 / any_value(n_of) ** 2
            + 2 * sum(hc3_share(of_x, of_leverage) * of_x ORDER BY in_order) ** 2
                / any_value(n_of * of_sxx)
            + sum(hc3_share(of_x, of_leverage) * of_x ** 2 ORDER BY in_order) ** 2
                / any_value(of_sxx) ** 2
        )
    END;
