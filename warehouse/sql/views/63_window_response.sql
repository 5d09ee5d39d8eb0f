-- grain: study x kind x dose x window_start x window_end x benchmark x groups x corpus x contrast x words x outcome
-- What it does to read the changed text in a part of the training only: the lean of such a model
-- less that of the model of its seed without a dose (`response`), and less that of the model that
-- read the same dose all the time (`short_of_whole`), means over seeds with Student's 95% intervals.
-- The part 0 to 0.5 is read first and then taken back: a response of 0 says that it was undone.
CREATE OR REPLACE VIEW window_response AS
WITH compared AS (
    SELECT
        part.*,
        part.lean - plain.lean AS moved,
        part.lean - whole.lean AS short
    FROM intervention_lean AS part
    JOIN intervention_lean AS plain
        USING (study, kind, seed, benchmark, groups, corpus, contrast, words, outcome)
    JOIN intervention_lean AS whole
        USING (study, kind, seed, benchmark, groups, corpus, contrast, words, outcome)
    WHERE whole.dose = part.dose AND NOT (part.window_start = 0 AND part.window_end = 1)
        AND plain.dose = 0
        AND whole.window_start = 0 AND whole.window_end = 1
)
SELECT
    study, kind, dose, window_start, window_end, benchmark, groups, corpus, contrast, words, outcome,
    avg(moved ORDER BY seed) AS response,
    avg(moved ORDER BY seed) - student_half(moved, least := 2) AS response_low,
    avg(moved ORDER BY seed) + student_half(moved, least := 2) AS response_high,
    avg(short ORDER BY seed) AS short_of_whole,
    avg(short ORDER BY seed) - student_half(short, least := 2) AS short_of_whole_low,
    avg(short ORDER BY seed) + student_half(short, least := 2) AS short_of_whole_high,
    count(*) AS n_seeds
FROM compared
GROUP BY ALL;
