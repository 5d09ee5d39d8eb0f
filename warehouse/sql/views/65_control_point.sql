-- grain: subset x model_key x benchmark x groups x corpus x contrast x ngram_key x pair_id
-- A pair's log ratio under a model, and what it may depend on: the lean of its word in a corpus (as
-- in `leaning_pair`), the log of the word's frequency, the pair's log ratio under an n-gram model
-- that counted the same corpus, and the length of its sentences. `frame` is the first sentence
-- without the word, so pairs of a frame differ only in the word. Pairs with an unknown are left
-- out.
CREATE OR REPLACE VIEW control_point AS
WITH ngram AS (
    SELECT t.model_key AS ngram_key, t.corpus
    FROM trained_key AS t JOIN model AS m USING (model_key)
    WHERE m.backend = 'ngram'
),
framed AS (
    SELECT
        benchmark, pair_id,
        regexp_replace(lower(sentence_a), '\b' || regexp_escape(lower(word)) || '\b', '_', 'g') AS frame
    FROM benchmark_pair
)
SELECT
    l.subset, l.model_key, l.model, l.benchmark, l.groups, l.corpus, l.contrast, n.ngram_key,
    l.pair_id, l.word, coalesce(f.frame, '') AS frame, l.log_ratio_nats, l.delta_nats,
    ln(d.n_word) AS log_frequency,
    s.logprob_a_nats - s.logprob_b_nats AS ngram_log_ratio_nats,
    (s.n_tokens_a + s.n_tokens_b) / 2 AS length_words
FROM leaning_pair AS l
JOIN word_delta AS d USING (corpus, contrast, word)
JOIN ngram AS n ON n.corpus = l.corpus AND n.ngram_key <> l.model_key
JOIN pair_score AS s
    ON s.model_key = n.ngram_key AND s.benchmark = l.benchmark AND s.pair_id = l.pair_id
JOIN framed AS f ON f.benchmark = l.benchmark AND f.pair_id = l.pair_id
WHERE d.n_word > 0 AND isfinite(s.logprob_a_nats) AND isfinite(s.logprob_b_nats);
