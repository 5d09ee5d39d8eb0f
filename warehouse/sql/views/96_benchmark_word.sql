-- grain: benchmark x word x measure x corpus x contrast x model_key, pairs that were made for a word
-- What was made of each seed word: a figure is total / n. Of all pairs: pairs (per word), rejected
-- (sentences, of those that came to an end), revised (pairs whose sentence is a revision), natural
-- (of those with a verdict). Of natural pairs: words (length of a sentence between white space),
-- pronoun_first, within_eta (by corpus and contrast, |MaxPMI| <= eta; undecided pairs are not), and
-- by model us (a share), pd (points) and log_ratio (nats). rejected and revised are of what a chat
-- model wrote. E.g. `FROM benchmark_word(eta_limit := 0.5) WHERE benchmark = 'demo'`.
CREATE OR REPLACE MACRO benchmark_word(eta_limit := 0.65, epsilon := ln(1.65)) AS TABLE
WITH made AS (
    SELECT
        b.benchmark, b.pair_id, lower(b.word) AS word, b.is_natural, b.pronoun_first, b.sentence_a,
        q.purpose = 'revise' AS is_revised
    FROM benchmark_pair AS b
    LEFT JOIN generation_request AS q
        ON q.benchmark = b.benchmark AND q.request_id = b.source_file
    WHERE b.word IS NOT NULL
),
of_made AS (
    SELECT
        benchmark, word, count(*) AS n_pairs,
        count_if(is_revised) AS n_revised, count(is_revised) AS n_written,
        count_if(is_natural) AS n_natural, count(is_natural) AS n_judged
    FROM made
    GROUP BY ALL
),
lost AS (
    SELECT q.benchmark, lower(q.word) AS word, count(*) AS n_lost
    FROM reject AS r
    JOIN generation_request AS q ON q.request_id = r.source_file
    WHERE r.stage = 'generate'
        AND r.subject IN (q.benchmark || '/write', q.benchmark || '/pair')
    GROUP BY ALL
),
written AS (
    SELECT benchmark, word, coalesce(n_pairs, 0) AS n_pairs, coalesce(n_lost, 0) AS n_lost
    FROM of_made FULL JOIN lost USING (benchmark, word)
    WHERE benchmark IN (SELECT benchmark FROM generation_request)
),
used AS (SELECT * FROM made WHERE is_natural IS NOT FALSE),
kept AS (
    SELECT
        benchmark, word, count(*) AS n_used,
        sum(len(string_split_regex(trim(sentence_a), '\s+'))) AS n_words,
        count_if(pronoun_first) AS n_first
    FROM used
    GROUP BY ALL
),
constrained AS (
    SELECT u.benchmark, u.word, a.corpus, a.contrast, count(*) AS n_used,
        count_if(meets_constraint(a.max_pmi_nats, a.n_words_unknown, eta_limit)) AS n_within
    FROM used AS u
    JOIN pair_association AS a USING (benchmark, pair_id)
    GROUP BY ALL
),
preferred AS (
    SELECT
        benchmark, lower(word) AS word, model_key, count(*) AS n_scored,
        count_if(lean(log_ratio_nats, epsilon) = 0) AS n_even,
        100 * sum(lean(log_ratio_nats, epsilon)) AS points,
        sum(log_ratio_nats ORDER BY pair_id) AS ratios
    FROM scored_pair
    WHERE word IS NOT NULL
    GROUP BY ALL
)
SELECT benchmark, word, measure, NULL::VARCHAR AS corpus, NULL::VARCHAR AS contrast,
    NULL::VARCHAR AS model_key, total::DOUBLE AS total, n::BIGINT AS n
FROM (
    SELECT benchmark, word, 'pairs' AS measure, n_pairs AS total, 1 AS n FROM of_made
    UNION ALL BY NAME
    SELECT benchmark, word, 'rejected' AS measure, n_lost AS total, n_pairs + n_lost AS n
    FROM written
    UNION ALL BY NAME
    SELECT benchmark, word, 'revised' AS measure, n_revised AS total, n_written AS n FROM of_made
    UNION ALL BY NAME
    SELECT benchmark, word, 'natural' AS measure, n_natural AS total, n_judged AS n FROM of_made
    UNION ALL BY NAME
    SELECT benchmark, word, 'words' AS measure, n_words AS total, n_used AS n FROM kept
    UNION ALL BY NAME
    SELECT benchmark, word, 'pronoun_first' AS measure, n_first AS total, n_used AS n FROM kept
)
WHERE n > 0
UNION ALL BY NAME
SELECT benchmark, word, 'within_eta' AS measure, corpus, contrast, NULL AS model_key,
    n_within AS total, n_used AS n
FROM constrained
UNION ALL BY NAME
SELECT
    benchmark, word, unnest(['us', 'pd', 'log_ratio']) AS measure, NULL AS corpus,
    NULL AS contrast, model_key, unnest([n_even, points, ratios]) AS total, n_scored AS n
FROM preferred;
