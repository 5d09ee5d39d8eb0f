-- grain: corpus x contrast x benchmark x word, words that decide a pair's MaxPMI
-- How many pairs a word decides, as a number and as a share of the pairs with a MaxPMI. Pairs
-- marked unnatural don't count.
CREATE OR REPLACE VIEW deciding_word AS
WITH decided AS (
    SELECT
        a.corpus, a.contrast, a.benchmark, a.max_pmi_word AS word,
        count(*) AS n_pairs,
        avg(a.max_pmi_nats ORDER BY a.pair_id) AS mean_max_pmi_nats
    FROM pair_association AS a
    JOIN benchmark_pair AS b USING (benchmark, pair_id)
    WHERE b.is_natural IS NOT FALSE AND a.max_pmi_nats IS NOT NULL
    GROUP BY ALL
),
shared AS (
    SELECT
        corpus, contrast, benchmark, word, n_pairs,
        n_pairs / sum(n_pairs) OVER (PARTITION BY corpus, contrast, benchmark) AS share,
        mean_max_pmi_nats
    FROM decided
)
-- Published statistics may give a MaxPMI without its word: such pairs count in the total of shares.
SELECT * FROM shared WHERE word IS NOT NULL;
