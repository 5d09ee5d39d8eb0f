-- grain: word with a delta (she/he) in $corpus
-- UnStereoEval divides the range of deltas, rounded out to whole nats, into 19 equal intervals and
-- draws seed words from the middle one. near_nats is half its width; is_near: the word lies in it.
SELECT
    word, delta_nats,
    ceil(max(abs(delta_nats)) OVER ()) / 19 AS near_nats,
    within(delta_nats, near_nats) AS is_near
FROM word_delta
WHERE corpus = $corpus AND contrast = 'she/he';
