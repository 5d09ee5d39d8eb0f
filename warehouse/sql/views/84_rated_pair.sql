-- grain: benchmark x question x pair_id, pairs with an answer
-- What raters say about a pair: how many rated it, and how many said yes. by_majority is true if
-- more than half say yes, NULL for a tie. is_natural is the verdict of the pair's source or chat
-- model.
CREATE OR REPLACE VIEW rated_pair AS
SELECT
    r.benchmark, r.question, r.pair_id,
    count(*) AS n_raters,
    count(*) FILTER (r.is_yes) AS n_yes,
    CASE WHEN 2 * n_yes <> n_raters THEN 2 * n_yes > n_raters END AS by_majority,
    b.is_natural, b.word, b.sentence_a, b.sentence_b
FROM rating AS r
JOIN benchmark_pair AS b USING (benchmark, pair_id)
GROUP BY ALL;
