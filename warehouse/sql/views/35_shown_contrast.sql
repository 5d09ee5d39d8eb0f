-- grain: corpus x contrast of word_delta
-- Contrasts that a report shows for each corpus: the main contrasts, and those of its other word
-- lists: a list's mean, or each pair if it has none. A list with she/he is represented by she/he.
CREATE OR REPLACE VIEW shown_contrast AS
WITH found AS (SELECT DISTINCT corpus, contrast FROM word_delta),
listed AS (
    SELECT
        corpus, word_list, list(concat_ws('/', word_a, word_b)) AS pairs,
        (corpus, word_list) IN (FROM found) AS has_mean
    FROM word_list WHERE word_a IS NOT NULL
    GROUP BY corpus, word_list
)
SELECT corpus, contrast FROM found SEMI JOIN main_contrast USING (contrast)
UNION
SELECT corpus, contrast FROM found JOIN listed AS l USING (corpus)
WHERE if(l.has_mean, contrast = l.word_list AND NOT list_contains(l.pairs, 'she/he'),
    list_contains(l.pairs, contrast));
