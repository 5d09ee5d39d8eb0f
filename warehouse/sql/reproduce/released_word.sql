-- grain: word with a delta (she/he) in $corpus
-- near_nats: half the width of the interval around 0, of 19 equal ones over the deltas, ends rounded
-- out to whole nats, that UnStereoEval draws seed words from; is_near: the word lies in it.
SELECT
    word, delta_nats,
    ceil(max(abs(delta_nats)) OVER ()) / 19 AS near_nats,
    within(delta_nats, near_nats) AS is_near
FROM word_delta
WHERE corpus = $corpus AND contrast = 'she/he';
