-- grain: model x benchmark
-- Do a judge and a scoring model find the same pairs natural?
-- The 2x2 table of two verdicts: the numbers of pairs natural to both, to the judge only, to the
-- model only, and to neither. To the model a pair is natural when its sides differ by at most 1 nat
-- per token. A kappa of 0 is agreement by chance; auc needs no limit, and at 0.5 the pairs that the
-- judge dropped differ no more than those it kept.
SELECT
    model, benchmark, n_both, n_judge_only, n_model_only, n_neither,
    round(kappa, 3) AS kappa,
    round(auc, 3) AS auc
FROM opinion_agreement(1);
