-- grain: text_set x window_tokens, documents that both have
-- How perplexity changes from one model to another with the same tokeniser, both given by key, on
-- the documents that both have: difference is in nats per token, after minus before, with Student's
-- 95% interval over documents (of the ratio of sums, linearised); perplexity_ratio is its exp, 1.02
-- for 2% more; direction says whether it fell, rose or neither.
CREATE OR REPLACE MACRO perplexity_difference(before_key, after_key) AS TABLE
WITH paired AS (
    SELECT
        b.text_set, b.window_tokens, b.n_tokens, b.n_words,
        -b.logprob_nats AS old, -a.logprob_nats AS new,
        sum(b.logprob_nats - a.logprob_nats) OVER text_set / sum(b.n_tokens) OVER text_set AS rate
    FROM perplexity AS b
    JOIN perplexity AS a
        ON a.text_set = b.text_set AND a.document = b.document AND a.text_id = b.text_id
        AND a.n_tokens = b.n_tokens
    WHERE b.model_key = before_key AND a.model_key = after_key
    WINDOW text_set AS (PARTITION BY b.text_set, b.window_tokens)
),
summed AS (
    SELECT
        text_set, window_tokens,
        count(*) AS n_documents, sum(n_tokens)::BIGINT AS tokens, sum(n_words)::BIGINT AS words,
        sum(old) AS old, sum(new) AS new, any_value(rate) AS difference,
        ratio_half(new - old - rate * n_tokens, n_tokens) AS half
    FROM paired
    GROUP BY ALL
)
SELECT
    text_set, window_tokens, n_documents, tokens AS n_tokens, words AS n_words,
    exp(old / tokens) AS before_perplexity,
    exp(new / tokens) AS after_perplexity,
    old / words AS before_nats_per_word,
    new / words AS after_nats_per_word,
    difference,
    difference - half AS difference_low,
    difference + half AS difference_high,
    exp(difference) AS perplexity_ratio,
    exp(difference - half) AS perplexity_ratio_low,
    exp(difference + half) AS perplexity_ratio_high,
    direction_of(difference - half, difference + half) AS direction
FROM summed;
