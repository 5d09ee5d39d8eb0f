-- grain: benchmark x pair_id x corpus x contrast x model_key
-- Every sentence pair with its MaxPMI and its scores. No pair is left out; missing values are NULL.
-- A pair has a row for each combination of a corpus and contrast that it was constrained with and a
-- model that scored the benchmark. Without a corpus, corpus and contrast are NULL; without a model,
-- model_key is. The log ratio (a minus b) is NULL unless both scores are finite.
CREATE OR REPLACE VIEW audited_pair AS
WITH pair AS (SELECT *, group_a || '/' || group_b AS groups FROM benchmark_pair),
constrained AS (
    SELECT DISTINCT benchmark, groups, corpus, contrast
    FROM pair_association JOIN pair USING (benchmark, pair_id)
),
scored AS (SELECT DISTINCT benchmark, model_key, model FROM pair_score)
SELECT
    benchmark, pair_id, groups, item_id, word, template, sentence_a, sentence_b, split,
    stereotype, category, direction, weight, is_natural, pronoun_first,
    corpus, contrast, max_pmi_nats, max_pmi_word, sum_delta_nats, n_words, n_words_defined,
    n_words_unknown, model_key, m.model, logprob_a_nats, logprob_b_nats,
    CASE
        WHEN isfinite(logprob_a_nats) AND isfinite(logprob_b_nats)
            THEN logprob_a_nats - logprob_b_nats
    END AS log_ratio_nats
FROM pair
LEFT JOIN constrained USING (benchmark, groups)
LEFT JOIN scored AS m USING (benchmark)
LEFT JOIN pair_association USING (corpus, contrast, benchmark, pair_id)
LEFT JOIN pair_score USING (model_key, benchmark, pair_id);
