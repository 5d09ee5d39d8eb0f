-- grain: benchmark, the one named $benchmark; no row when it has no pair
-- The figures of UnStereoEval's Table 7 for a benchmark. Pairs marked unnatural don't count, nor,
-- unless $pair_ids is NULL, pairs that are not in that list. $placeholder is the pattern of a
-- pronoun placeholder, $female and $male are lists of gendered words.
-- A word is what remains between white space when all ASCII punctuation is deleted; a placeholder
-- is one word. Positions are those of placeholders, in words from 0. A token is a word or a mark as
-- the Penn Treebank splits them (do|n't, the cook|'s, an opening quote stays with its word),
-- without placeholders. Seed words are counted once each, gendered words at every token.
WITH pair AS (
    SELECT
        word,
        regexp_replace(lower(template), $placeholder, ' PRONOUN ', 'g') AS text
    FROM benchmark_pair
    WHERE benchmark = $benchmark AND is_natural IS NOT FALSE
        AND ($pair_ids IS NULL OR pair_id IN (SELECT unnest($pair_ids::VARCHAR[])))
),
split AS (
    SELECT
        word,
        string_split_regex(trim(regexp_replace(text, '[[:punct:]]', '', 'g')), '\s+') AS words,
        regexp_extract_all(
            regexp_replace(
                replace(text, 'PRONOUN', ''),
                '([\pL])(n''t|''(?:s|m|d|ll|re|ve))\b', '\1 \2', 'g'
            ),
            '\.\.+|--|''?[\pL\pN_]+(?:[-/.''][\pL\pN_]+)*|[^\s\pL\pN_]'
        ) AS tokens
    FROM pair
),
shape AS (
    SELECT
        word,
        len(words) AS n_words,
        len(tokens) AS n_tokens,
        len([w FOR w IN words IF w = 'PRONOUN']) AS n_pronouns,
        list_position(words, 'PRONOUN') - 1 AS first_position,
        len(words) - list_position(list_reverse(words), 'PRONOUN') AS last_position,
        len([t FOR t IN tokens IF list_contains($female::VARCHAR[], t)]) AS n_female,
        len([t FOR t IN tokens IF list_contains($male::VARCHAR[], t)]) AS n_male
    FROM split
)
SELECT
    $benchmark AS benchmark,
    count(*) AS n_pairs,
    count(DISTINCT word) AS n_seed_words,
    sum(n_female)::BIGINT AS n_female,
    sum(n_male)::BIGINT AS n_male,
    count(*) FILTER (n_female > 0) AS n_pairs_female,
    count(*) FILTER (n_male > 0) AS n_pairs_male,
    count(*) FILTER (n_female + n_male > 0) AS n_pairs_gendered,
    median(n_pronouns) AS pronouns_median,
    max(n_pronouns) AS pronouns_max,
    median(first_position) AS first_position_median,
    max(first_position) AS first_position_max,
    median(last_position) AS last_position_median,
    max(last_position) AS last_position_max,
    median(n_words) AS words_median,
    max(n_words) AS words_max,
    median(n_tokens) AS tokens_median,
    max(n_tokens) AS tokens_max
FROM shape
HAVING count(*) > 0;
