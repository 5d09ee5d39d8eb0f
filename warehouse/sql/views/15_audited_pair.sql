-- grain: benchmark x pair_id x corpus x contrast x model_key
-- Every sentence pair with its MaxPMI and its scores: nothing is left out, what is missing is NULL.
-- A pair has a row for each corpus and contrast that its groups were constrained with, and for
-- each model that scored the benchmark. Without any of these, corpus and contrast, or model_key, is
-- NULL. The log ratio (a minus b) is NULL unless both scores are finite.
CREATE OR REPLACE VIEW audited_pair AS
WITH pair AS (SELECT *, group_a || '/' || group_b AS groups FROM benchmark_pair),
constrained AS (
    SELECT DISTINCT benchmark, groups, corpus, contrast
    FROM pair_association JOIN pair USING (benchmark, pair_id)
)
SELECT
    b.benchmark,
    b.pair_id,
    b.groups,
    b.item_id,
    b.word,
    b.template,
    b.sentence_a,
    b.sentence_b,
    b.split,
    b.stereotype,
    b.category,
    b.direction,
    b.weight,
    b.is_natural,
    b.pronoun_first,
    c.corpus,
    c.contrast,
    a.max_pmi_nats,
    a.max_pmi_word,
    a.sum_delta_nats,
    a.n_words,
    a.n_words_defined,
    a.n_words_unknown,
    m.model_key,
    m.model,
    s.logprob_a_nats,
    s.logprob_b_nats,
    CASE
        WHEN isfinite(s.logprob_a_nats) AND isfinite(s.logprob_b_nats)
            THEN s.logprob_a_nats - s.logprob_b_nats
    END AS log_ratio_nats
FROM pair AS b
LEFT JOIN constrained AS c ON c.benchmark = b.benchmark AND c.groups = b.groups
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
