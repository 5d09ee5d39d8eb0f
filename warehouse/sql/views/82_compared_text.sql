-- grain: probe_set x model_key x sampling_key x perturber x side x prompt x text
-- The texts that FairPair compares: continuations of a prompt, rewritten about the counterpart
-- (is_perturbed), and continuations of the counterpart's own prompt. A text is only what the model
-- wrote, without the prompt. Both groups have only texts with a valid perturbation, so both passed
-- the same filter. written_of is the person in the prompt that a text continued, told_of the person
-- that the text is now about.
CREATE OR REPLACE VIEW compared_text AS
WITH perturbed AS (
    SELECT
        c.probe_set, c.model_key, c.sampling_key, c.perturber, c.side, c.prompt_id, c.sample,
        true AS is_perturbed,
        CASE c.side WHEN 'original' THEN p.entity ELSE p.perturbed_entity END AS written_of,
        CASE c.side WHEN 'original' THEN p.perturbed_entity ELSE p.entity END AS told_of,
        -- A valid text starts with the prompt of the other side.
        c.perturbed_text[
            len(CASE c.side WHEN 'original' THEN p.perturbed_prompt ELSE p.prompt END) + 1:
        ] AS text
    FROM perturbed_continuation AS c
    JOIN probe_prompt AS p USING (probe_set, prompt_id)
    WHERE c.is_valid
),
-- The texts that perturbed ones are compared with, once for each perturber.
other AS (
    SELECT
        d.probe_set, d.model_key, d.sampling_key, d.perturber, d.side, c.prompt_id, c.sample,
        false AS is_perturbed, d.told_of AS written_of, d.told_of, c.continuation AS text
    FROM (
        SELECT DISTINCT
            probe_set, model_key, sampling_key, perturber, side, prompt_id, told_of
        FROM perturbed
    ) AS d
    JOIN continuation AS c
        ON c.probe_set = d.probe_set AND c.model_key = d.model_key
        AND c.sampling_key = d.sampling_key AND c.prompt_id = d.prompt_id AND c.side != d.side
    WHERE NOT EXISTS (
        FROM perturbed_continuation AS f
        WHERE NOT f.is_valid AND f.probe_set = c.probe_set AND f.model_key = c.model_key
            AND f.sampling_key = c.sampling_key AND f.perturber = d.perturber
            AND f.prompt_id = c.prompt_id AND f.side = c.side AND f.sample = c.sample
    )
)
SELECT * FROM perturbed
UNION ALL
SELECT * FROM other;

-- The words of a text, lower case: letters and digits, with apostrophes inside.
CREATE OR REPLACE MACRO words_of(text) AS
    regexp_extract_all(replace(lower(text), '’', ''''), '[\pL\pN]+(?:''[\pL\pN]+)*');
