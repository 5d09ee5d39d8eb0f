-- grain: benchmark x pair_id
-- The clusters of similar pairs that intervals are computed over. Clusters named at import come
-- first. Otherwise cluster_1 is the pair's word, or its template if it has no word. cluster_2 is
-- the frame (the template without the word) if words share frames: at most half as many frames as
-- pairs. Names begin with the kind, so a word and a frame are never the same cluster, but the same
-- occupation in two places is. If other pairs have a second cluster, a pair without one is a
-- cluster by itself. The stratum is the pair's `stereotype`.
CREATE OR REPLACE VIEW pair_cell AS
WITH framed AS (
    SELECT
        benchmark, pair_id, cluster, cluster_2, template, stereotype,
        lower(word) AS word, frame_of(template, word) AS frame
    FROM benchmark_pair
),
shared AS (
    SELECT benchmark
    FROM framed
    WHERE word IS NOT NULL
    GROUP BY benchmark
    HAVING 2 * count(DISTINCT frame) <= count(*)
),
of_two AS (
    SELECT DISTINCT benchmark
    FROM framed
    WHERE cluster_2 IS NOT NULL AND cluster IS NOT NULL OR benchmark IN (FROM shared)
)
SELECT
    benchmark, pair_id,
    coalesce(cluster, 'word: ' || word, 'text: ' || template) AS cluster_1,
    CASE
        WHEN cluster IS NOT NULL AND cluster_2 IS NOT NULL THEN cluster_2
        WHEN cluster IS NULL AND benchmark IN (FROM shared) THEN 'frame: ' || coalesce(frame, template)
        WHEN benchmark IN (FROM of_two) THEN 'pair: ' || pair_id
    END AS cluster_2,
    stereotype AS stratum
FROM framed;

-- grain: benchmark x pair_id x cluster
-- The same with one row for each cluster of a pair, at most two.
CREATE OR REPLACE VIEW pair_cluster AS
SELECT benchmark, pair_id, unnest(list_distinct([cluster_1, cluster_2])) AS cluster, stratum
FROM pair_cell;

-- grain: probe_set x prompt_id
-- The clusters of similar prompts in a set: the prompt's occupation, else its topic, else the
-- prompt itself. If some prompt of the set has a topic but no occupation, the topic comes first.
CREATE OR REPLACE VIEW prompt_cell AS
SELECT
    probe_set, prompt_id,
    coalesce(
        CASE WHEN bool_or(topic IS NOT NULL AND occupation IS NULL) OVER (PARTITION BY probe_set)
            THEN 'topic: ' || topic
        END,
        'occupation: ' || occupation, 'topic: ' || topic, 'prompt: ' || prompt_id
    ) AS cluster_1
FROM probe_prompt;
