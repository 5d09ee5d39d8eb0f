-- grain: benchmark x pair_id, in this order: natural pairs constrained by she/he in $corpus
-- Pronouns are counted by form: n_own counts his (her before a noun), n_object him, n_self himself.
-- If no word has a delta, max_pmi_nats and sum_delta_nats are 0.
SELECT
    benchmark, pair_id, c.cluster_1, nullif(c.cluster_2, 'pair: ' || pair_id) AS cluster_2,
    coalesce(b.pronoun_first, FALSE)::DOUBLE AS pronoun_first,
    len(regexp_extract_all(b.template, '\{pronoun[12]?\}'))::DOUBLE AS n_pronouns,
    len(regexp_extract_all(b.template, '\{pronoun1\}'))::DOUBLE AS n_own,
    len(regexp_extract_all(b.template, '\{pronoun2\}self\b'))::DOUBLE AS n_self,
    len(regexp_extract_all(b.template, '\{pronoun2\}'))::DOUBLE - n_self AS n_object,
    coalesce(a.max_pmi_nats, 0) AS max_pmi_nats,
    coalesce(a.sum_delta_nats, 0) AS sum_delta_nats,
    len(string_split_regex(trim(b.template), '\s+'))::DOUBLE AS n_words
FROM benchmark_pair AS b
JOIN pair_cell AS c USING (benchmark, pair_id)
JOIN pair_association AS a USING (benchmark, pair_id)
WHERE b.is_natural IS NOT FALSE AND a.corpus = $corpus AND a.contrast = 'she/he'
ORDER BY benchmark, pair_id;
