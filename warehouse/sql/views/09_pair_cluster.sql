-- grain: benchmark x pair_id
-- Clusters of similar pairs, for intervals: the columns named at import, else the pair's word, and
-- its frame (the template without the word) if words share frames (at most half as many frames as
-- pairs); for pairs without a word, the template. A cluster's name contains its kind: a word and a
-- frame are never one cluster, but two occupations may be. A pair that lacks a cluster of the
-- second kind, if others have one, is one by itself. The stratum is the stereotype in a set half of
-- each.
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
-- The clusters of similar prompts in a set. All prompts of a set have one kind of cluster: the
-- topic if some prompt with a topic has no occupation, else the occupation, else each prompt by
-- itself.
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
