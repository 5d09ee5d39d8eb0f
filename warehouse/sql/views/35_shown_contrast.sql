-- grain: corpus x contrast of word_delta
-- The contrasts that a report shows for each corpus: the main contrasts, and for each other word
-- list its mean, or its pairs if it has no mean. If a list with a mean contains she/he, its mean
-- isn't shown.
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
