-- grain: text_set x model_key x window_tokens
-- Half the width of Student's 95% interval of a ratio of two sums over documents, linearised: the
-- residuals are numerator minus ratio times denominator, and sum to 0. NULL with a single document.
CREATE OR REPLACE MACRO ratio_half(residual, denominator) AS
    t975(count(residual) - 1) * stddev_samp(residual) * sqrt(count(residual)) / sum(denominator);

-- Perplexity of a model on held-out documents: exp(nats_per_token), over all tokens of the set;
-- nats_per_word can be compared between tokenisers. The 95% intervals are Student's over
-- documents, of the ratio of two sums, linearised; NULL with a single document.
CREATE OR REPLACE VIEW perplexity_set AS
WITH rated AS (
    SELECT
        *,
        sum(-logprob_nats) OVER model_set / sum(n_tokens) OVER model_set AS rate,
        sum(-logprob_nats) OVER model_set / sum(n_words) OVER model_set AS rate_word
    FROM perplexity
    WINDOW model_set AS (PARTITION BY text_set, model_key, window_tokens)
),
summed AS (
    SELECT
        text_set, model_key, model, window_tokens,
        count(*) AS n_documents, sum(n_tokens)::BIGINT AS n_tokens, sum(n_words)::BIGINT AS n_words,
        any_value(rate) AS nats_per_token,
        any_value(rate_word) AS nats_per_word,
        ratio_half(-logprob_nats - rate * n_tokens, n_tokens) AS half,
        ratio_half(-logprob_nats - rate_word * n_words, n_words) AS half_word
    FROM rated
    GROUP BY ALL
)
SELECT
    text_set, model_key, model, window_tokens, n_documents, n_tokens, n_words,
    nats_per_token,
    exp(nats_per_token) AS perplexity,
    exp(nats_per_token - half) AS perplexity_low,
    exp(nats_per_token + half) AS perplexity_high,
    nats_per_word,
    nats_per_word - half_word AS nats_per_word_low,
    nats_per_word + half_word AS nats_per_word_high
FROM summed;
