-- grain: benchmark x pair_id x corpus x contrast x model_key
-- Every sentence pair with its MaxPMI and its scores: nothing is left out, what is missing is NULL.
-- A pair has a row for each corpus and contrast that its benchmark was constrained with, and for
-- each model that scored the benchmark. Without any of these, corpus and contrast, or model_key, is
-- NULL. The log ratio (female minus male) is NULL unless both scores are finite.
CREATE OR REPLACE VIEW audited_pair AS
SELECT
    b.benchmark,
    b.pair_id,
    b.word,
    b.template,
    b.sentence_f,
    b.sentence_m,
    b.split,
    b.stereotype,
    b.is_natural,
    b.pronoun_first,
    c.corpus,
    c.contrast,
    a.max_pmi_nats,
    a.max_pmi_word,
    a.sum_delta_nats,
    a.n_words,
    a.n_words_defined,
    m.model_key,
    m.model,
    s.logprob_f_nats,
    s.logprob_m_nats,
    CASE
        WHEN isfinite(s.logprob_f_nats) AND isfinite(s.logprob_m_nats)
            THEN s.logprob_f_nats - s.logprob_m_nats
    END AS log_ratio_nats
FROM benchmark_pair AS b
LEFT JOIN (SELECT DISTINCT benchmark, corpus, contrast FROM pair_association) AS c
    ON c.benchmark = b.benchmark
LEFT JOIN (SELECT DISTINCT benchmark, model_key, model FROM pair_score) AS m
    ON m.benchmark = b.benchmark
LEFT JOIN pair_association AS a
    ON a.corpus = c.corpus
    AND a.contrast = c.contrast
    AND a.benchmark = b.benchmark
    AND a.pair_id = b.pair_id
LEFT JOIN pair_score AS s
    ON s.model_key = m.model_key
    AND s.benchmark = b.benchmark
    AND s.pair_id = b.pair_id;
