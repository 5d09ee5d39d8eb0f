-- grain: model_key x benchmark x pair_id x side x position, words of pairs scored with `--per-token`
-- What two spellings of a text share whose case, accents and white space may differ.
CREATE OR REPLACE MACRO characters_of(spelled) AS
    regexp_replace(strip_accents(lower(spelled)), '\s|##', '', 'g');

-- Log-probability of each word of a sentence; words are what stands between white space, with their
-- punctuation, position from 0. It is the sum over the word's tokens, those from the token with its
-- first character to the last before the next word's, so the words of a sentence sum to its score.
-- White space counts with the word behind it, at the end with the last. A token that spans two words
-- counts in the one that it begins in; a word in which none begins has no row. BOS is given, never
-- scored: a causal model's first word is conditioned on BOS alone. Tokens of a tokenizer that keeps no
-- spaces are placed by their characters; a sentence with a word that it doesn't know (`<unk>`) then
-- has no rows.
CREATE OR REPLACE VIEW word_logprob AS
WITH sentence AS (
    SELECT benchmark, pair_id, unnest(['a', 'b']) AS side, unnest([sentence_a, sentence_b]) AS text
    FROM benchmark_pair
),
split AS (
    SELECT
        benchmark,
        pair_id,
        side,
        regexp_extract_all(text, '\S+') AS words,
        list_transform(words, lambda word: len(characters_of(word))) AS sizes
    FROM sentence
),
spelled AS (
    SELECT
        model_key, benchmark, pair_id, side,
        characters_of(string_agg(token, '' ORDER BY position)) AS spelling
    FROM token_logprob
    GROUP BY ALL
),
-- is_new: what the token begins with is another word than that of the token before it.
begun AS (
    SELECT
        *,
        last_value(nullif(token, '') IGNORE NULLS) OVER before AS token_before,
        regexp_matches(token, '^\s') OR coalesce(regexp_matches(token_before, '\s$'), true) AS is_new,
        len(regexp_extract_all(token, '\S+'))
        - (NOT is_new AND regexp_matches(token, '^\S'))::INTEGER AS n_begun
    FROM token_logprob
    WINDOW before AS (
        PARTITION BY model_key, benchmark, pair_id, side ORDER BY position
        ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
    )
),
counted AS (
    SELECT
        *,
        coalesce(sum(n_begun) OVER before, 0) + is_new::INTEGER AS place_by_space,
        coalesce(sum(len(characters_of(token))) OVER before, 0) AS n_characters_before,
        sum(n_begun) OVER (PARTITION BY model_key, benchmark, pair_id, side) AS n_spaced
    FROM begun
    WINDOW before AS (
        PARTITION BY model_key, benchmark, pair_id, side ORDER BY position
        ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
    )
),
placed AS (
    SELECT
        c.*,
        words,
        CASE
            WHEN n_spaced = len(words) THEN least(place_by_space, n_spaced)
            WHEN spelling = characters_of(array_to_string(words, ''))
                THEN 1 + len(list_filter(
                    range(1, len(words)), lambda n: list_sum(sizes[:n]) <= n_characters_before
                ))
        END::INTEGER AS place
    FROM counted AS c
    JOIN split USING (benchmark, pair_id, side)
    JOIN spelled USING (model_key, benchmark, pair_id, side)
)
SELECT
    model_key,
    m.model,
    benchmark,
    pair_id,
    side,
    place - 1 AS position,
    words[place] AS word,
    count(*) AS n_tokens,
    sum(logprob_nats::DOUBLE ORDER BY p.position) AS logprob_nats
FROM placed AS p
JOIN model AS m USING (model_key)
WHERE place IS NOT NULL
GROUP BY ALL;
