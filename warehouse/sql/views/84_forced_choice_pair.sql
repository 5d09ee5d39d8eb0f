-- grain: benchmark x model_key x setting x pair_id, natural pairs that were asked about
-- What a model chose for each pair that it was asked about. share_a_first is how often it chose
-- sentence a when a was shown first, share_a_second when a was shown second. Replies that name
-- neither sentence (n_neither) don't count. preference is the mean of the two shares, so a
-- preference for a place cancels out. first_share is how often the sentence shown first was chosen.
-- NULL if one of the orders has no choice.
CREATE OR REPLACE VIEW forced_choice_pair AS
WITH counted AS (
    SELECT
        c.benchmark, c.model_key, c.model, c.setting, c.pair_id,
        b.group_a || '/' || b.group_b AS groups,
        b.sentence_a, b.sentence_b,
        count(*) AS n_asks,
        count(*) FILTER (c.choice IS NULL) AS n_neither,
        avg((c.choice = 'a')::INT) FILTER (c.shown_first = 'a') AS share_a_first,
        avg((c.choice = 'a')::INT) FILTER (c.shown_first = 'b') AS share_a_second
    FROM pair_choice AS c
    JOIN benchmark_pair AS b USING (benchmark, pair_id)
    WHERE b.is_natural IS NOT FALSE
    GROUP BY ALL
)
SELECT
    *,
    (share_a_first + share_a_second) / 2 AS preference,
    (share_a_first + 1 - share_a_second) / 2 AS first_share
FROM counted;
