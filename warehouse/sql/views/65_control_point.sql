-- grain: subset x model_key x benchmark x groups x corpus x contrast x ngram_key x pair_id
-- A pair's log ratio under a model, and what it may depend on: the lean of its word in a corpus (as
-- in `fit_point`), the log of the word's frequency, the pair's log ratio under an n-gram model that
-- counted the same corpus, and the length of its sentences. `frame` is the first sentence without
-- the word, so its pairs differ only in the word. Pairs that lack one are left out.
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
),
leaning AS (
    SELECT
        'words, measured delta' AS subset, p.model_key, p.model, p.benchmark, p.groups, d.corpus, d.contrast,
        p.pair_id, d.word, p.log_ratio_nats, d.delta_nats, d.n_word
    FROM scored_pair AS p
    JOIN word_delta AS d ON d.word = lower(p.word)
    WHERE d.contrast IN (FROM main_contrast)
        AND (d.corpus, d.contrast, p.benchmark) NOT IN (FROM neutral_benchmark)
    UNION ALL
    SELECT
        'words, max_pmi', p.model_key, p.model, p.benchmark, p.groups, p.corpus, p.contrast,
        p.pair_id, d.word, p.log_ratio_nats, p.max_pmi_nats, d.n_word
    FROM scored_pair_association AS p
    JOIN word_delta AS d
        ON d.corpus = p.corpus AND d.contrast = p.contrast AND d.word = p.max_pmi_word
    WHERE p.benchmark NOT IN (SELECT benchmark FROM benchmark_pair WHERE word IS NOT NULL)
        OR (p.corpus, p.contrast, p.benchmark) IN (FROM neutral_benchmark)
)
SELECT
    l.subset, l.model_key, l.model, l.benchmark, l.groups, l.corpus, l.contrast, n.ngram_key,
    l.pair_id, l.word, coalesce(f.frame, '') AS frame, l.log_ratio_nats, l.delta_nats,
    ln(l.n_word) AS log_frequency,
    s.logprob_a_nats - s.logprob_b_nats AS ngram_log_ratio_nats,
    (s.n_tokens_a + s.n_tokens_b) / 2 AS length_words
FROM leaning AS l
JOIN ngram AS n ON n.corpus = l.corpus AND n.ngram_key <> l.model_key
JOIN pair_score AS s
    ON s.model_key = n.ngram_key AND s.benchmark = l.benchmark AND s.pair_id = l.pair_id
JOIN framed AS f ON f.benchmark = l.benchmark AND f.pair_id = l.pair_id
WHERE (l.corpus, l.benchmark) NOT IN (FROM foreign_corpus)
    AND l.n_word > 0 AND isfinite(s.logprob_a_nats) AND isfinite(s.logprob_b_nats);
