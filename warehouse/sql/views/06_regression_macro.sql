-- grain: none, aggregates that views of fitted lines share
-- A line through points has the error HC3 of MacKinnon and White (1985): each point's influence on
-- the figure is taken over 1 - h, h its leverage, so that points may scatter unequally and none may
-- hide behind the line that it draws towards itself. With h = 1 a point decides the line alone: NULL.

-- Leverage of a point in a fit of n_of points: of_x is its distance from their mean, of_sxx the sum
-- of the squares of these distances.
CREATE OR REPLACE MACRO leverage(of_x, of_sxx, n_of) AS 1 / n_of + of_x ** 2 / of_sxx;

-- The sum of products of two influences, each over 1 - h: the variance where both are the same.
CREATE OR REPLACE MACRO hc3_sum(influence_a, influence_b, of_leverage, in_order) AS
    CASE WHEN max(of_leverage) < 1 - 1e-9
        THEN sum(influence_a * influence_b / (1 - of_leverage) ** 2 ORDER BY in_order)
    END;

-- How much a point's squared residual counts in the HC3 variance of a slope, up to a factor.
CREATE OR REPLACE MACRO hc3_share(of_x, of_leverage) AS (of_x / (1 - of_leverage)) ** 2;

-- Degrees of freedom of the HC3 variance of a slope, by Satterthwaite's approximation as Bell and
-- McCaffrey (2002) have it: those of the chi-squared with its mean and variance if all points
-- scattered equally. Fewer than n - 2 where a few points have most of the leverage.
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
