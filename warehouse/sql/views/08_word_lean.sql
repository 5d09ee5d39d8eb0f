-- grain: corpus x contrast x word, words with a delta or a co-occurrence with either side
-- How far words lean: delta_nats, with its standard error and its 95% interval, delta_nats_low to
-- delta_nats_high. `over` says what is taken as independent: `sources` or `documents` for words
-- that `why` explained (table `word_evidence`), else `co-occurrences`. Intervals over
-- co-occurrences are mostly too narrow, since words of one text are related. A word that is near
-- only one side has no delta, and its interval is infinite at one end. lean_bound_nats is the bound
-- of the interval that is nearer 0. It is 0 if the interval contains 0 or has fewer than five
-- documents or sources. For imported statistics, which have no interval, it is delta itself.
--
-- p, q          p-value of no lean; q is p corrected for all words of the contrast (Benjamini and
--               Hochberg). Over co-occurrences p is the exact test of the two sides; over documents
--               and sources, words that `why` didn't explain count as p = 1
-- is_ranked     whether pages rank the word: it is not one of the contrast's own words, and not a
--               `spanish_word` in a contrast with `he`. If `why` explained all words of
--               `lean_candidate`, only explained words are ranked
CREATE OR REPLACE VIEW word_lean AS
WITH asked_contrast AS (
    SELECT corpus, contrast, bool_and(e.word IS NOT NULL) AS all_asked
    FROM lean_candidate LEFT JOIN word_evidence AS e USING (corpus, contrast, word)
    GROUP BY corpus, contrast
),
contrast_size AS (
    SELECT corpus, contrast, count(*) AS n_words
    FROM counted_lean WHERE is_other
    GROUP BY corpus, contrast
),
asked AS (
    SELECT
        *,
        coalesce(bound_nearer_zero(NULL, delta_nats_low, delta_nats_high), 0) AS lean_bound_nats,
        NOT list_contains(string_split(contrast, '/'), word) AS is_other,
        p * n_words / row_number() OVER (
            PARTITION BY corpus, contrast, is_other ORDER BY p, word
        ) AS scaled_p
    FROM word_evidence JOIN contrast_size USING (corpus, contrast)
    WHERE NOT contains(word, ' ')
),
corrected AS (
    SELECT
        *,
        if(p IS NOT NULL, least(1, min(scaled_p) OVER (
            PARTITION BY corpus, contrast, is_other ORDER BY p DESC, word DESC
        )), NULL) AS q
    FROM asked
)
SELECT
    corpus, contrast, word,
    coalesce(e.n_word, c.n_word) AS n_word,
    coalesce(e.n_pair_f, c.n_pair_f) AS n_pair_f,
    coalesce(e.n_pair_m, c.n_pair_m) AS n_pair_m,
    coalesce(e.n_defined, c.n_defined) AS n_defined,
    if(e.word IS NULL, c.delta_nats, e.delta_nats) AS delta_nats,
    if(e.word IS NULL, c.delta_nats_se, e.delta_nats_se) AS delta_nats_se,
    if(e.word IS NULL, c.delta_nats_low, e.delta_nats_low) AS delta_nats_low,
    if(e.word IS NULL, c.delta_nats_high, e.delta_nats_high) AS delta_nats_high,
    if(e.word IS NULL, c.lean_bound_nats, e.lean_bound_nats) AS lean_bound_nats,
    if(e.word IS NULL, c.p, e.p) AS p,
    if(e.word IS NULL, c.q, e.q) AS q,
    coalesce(e.clusters || 's', 'co-occurrences') AS "over",
    c.is_other
    AND NOT (list_contains(string_split(contrast, '/'), 'he') AND word IN (FROM spanish_word))
    AND (e.word IS NOT NULL OR NOT coalesce(all_asked, false)) AS is_ranked
FROM counted_lean AS c
LEFT JOIN corrected AS e USING (corpus, contrast, word)
LEFT JOIN asked_contrast USING (corpus, contrast);
