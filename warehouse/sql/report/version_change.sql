-- grain: the version $model_key of a model on $benchmark and $groups, compared with $previous_key
SELECT
    model_key, benchmark, groups, n_pairs, n_clusters,
    reference_mean AS pd_before, model_mean AS pd,
    difference AS change, difference_low AS change_low, difference_high AS change_high
FROM preference_pairwise(
    epsilon := $epsilon, reference := $previous_key, of_model := $model_key,
    of_benchmark := $benchmark
)
WHERE groups = $groups AND measure = 'pd';
