-- grain: run_id x table_name
-- Rows that a run wrote and that no later run has replaced, in the tables with a run_id; for the
-- others use `plumbline runs show RUN`.
CREATE OR REPLACE VIEW run_written AS
WITH named AS (
    SELECT 'corpus' AS table_name, run_id FROM corpus
    UNION ALL SELECT 'corpus_shard' AS table_name, run_id FROM corpus_shard
    UNION ALL SELECT 'reject' AS table_name, run_id FROM reject
    UNION ALL SELECT 'vocabulary' AS table_name, run_id FROM vocabulary
    UNION ALL SELECT 'seed_word' AS table_name, run_id FROM seed_word
    UNION ALL SELECT 'seed_verdict' AS table_name, run_id FROM seed_verdict
    UNION ALL SELECT 'generation_request' AS table_name, run_id FROM generation_request
    UNION ALL SELECT 'benchmark_fact' AS table_name, run_id FROM benchmark_fact
    UNION ALL SELECT 'rating' AS table_name, run_id FROM rating
    UNION ALL SELECT 'rating_agreement' AS table_name, run_id FROM rating_agreement
    UNION ALL SELECT 'model' AS table_name, run_id FROM model
    UNION ALL SELECT 'trained_model' AS table_name, run_id FROM trained_model
    UNION ALL SELECT 'pair_score' AS table_name, run_id FROM pair_score
    UNION ALL SELECT 'pair_choice' AS table_name, run_id FROM pair_choice
    UNION ALL SELECT 'token_logprob' AS table_name, run_id FROM token_logprob
    UNION ALL SELECT 'metric_value' AS table_name, run_id FROM metric_value
    UNION ALL SELECT 'model_rank' AS table_name, run_id FROM model_rank
    UNION ALL SELECT 'benchmark_power' AS table_name, run_id FROM benchmark_power
    UNION ALL SELECT 'control' AS table_name, run_id FROM control
    UNION ALL SELECT 'probe_prompt' AS table_name, run_id FROM probe_prompt
    UNION ALL SELECT 'instruction' AS table_name, run_id FROM instruction
    UNION ALL SELECT 'sampling' AS table_name, run_id FROM sampling
    UNION ALL SELECT 'continuation' AS table_name, run_id FROM continuation
    UNION ALL SELECT 'perturbed_continuation' AS table_name, run_id FROM perturbed_continuation
    UNION ALL SELECT 'fairpair_prompt' AS table_name, run_id FROM fairpair_prompt
    UNION ALL SELECT 'fairpair_set' AS table_name, run_id FROM fairpair_set
    UNION ALL SELECT 'fairpair_convergence' AS table_name, run_id FROM fairpair_convergence
    UNION ALL SELECT 'fairpair_calibration' AS table_name, run_id FROM fairpair_calibration
    UNION ALL SELECT 'attribute_pair' AS table_name, run_id FROM attribute_pair
    UNION ALL SELECT 'pronoun_probability' AS table_name, run_id FROM pronoun_probability
    UNION ALL SELECT 'tuning' AS table_name, run_id FROM tuning
    UNION ALL SELECT 'tuning_step' AS table_name, run_id FROM tuning_step
    UNION ALL SELECT 'word_evidence' AS table_name, run_id FROM word_evidence
    UNION ALL SELECT 'word_copies' AS table_name, run_id FROM word_copies
    UNION ALL SELECT 'word_source' AS table_name, run_id FROM word_source
    UNION ALL SELECT 'word_collocate' AS table_name, run_id FROM word_collocate
    UNION ALL SELECT 'word_snippet' AS table_name, run_id FROM word_snippet
)
SELECT run_id, table_name, count(*) AS n_rows FROM named GROUP BY ALL;
