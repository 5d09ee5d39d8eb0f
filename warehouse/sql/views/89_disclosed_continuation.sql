-- grain: probe_set x model_key x sampling_key x word_list x prompt_id x sample
-- What a model wrote for each prompt, and how likely gendered words were: the prompt, its
-- continuation, and p_f, p_m, leaning and gld of disclosure_prompt() under the same instruction
-- (NULL if no probabilities were measured). verdict is what GAS counts (`Explicit` in Tables 7 and
-- 8 of Dong et al.): `gendered` if the text contains a gendered word, else `neutral`; NULL if it is
-- only white space. gender says which words a gendered text contains: `female`, `male` or `both`.
-- implicit is `Implicit` in these tables (`is_implicit`).
CREATE OR REPLACE VIEW disclosed_continuation AS
SELECT
    g.probe_set, g.model_key, g.model, g.sampling_key, g.instruction_key, g.word_list,
    g.prompt_id, g.topic, g.sample, t.prompt, c.continuation,
    d.p_f, d.p_m, d.share_f, d.share_m, d.leaning, d.gld,
    CASE WHEN g.holds_any THEN 'gendered' WHEN NOT g.holds_any THEN 'neutral' END AS verdict,
    CASE
        WHEN g.holds_f AND g.holds_m THEN 'both'
        WHEN g.holds_f THEN 'female'
        WHEN g.holds_m THEN 'male'
    END AS gender,
    is_implicit(d.p_f, d.p_m) AS implicit
FROM gendered_continuation AS g
JOIN probe_prompt AS t USING (probe_set, prompt_id)
JOIN continuation AS c
    ON c.probe_set = g.probe_set AND c.model_key = g.model_key
    AND c.sampling_key = g.sampling_key AND c.prompt_id = g.prompt_id AND c.sample = g.sample
    AND c.side = 'original'
LEFT JOIN disclosure_prompt() AS d
    ON d.probe_set = g.probe_set AND d.model_key = g.model_key AND d.word_list = g.word_list
    AND d.prompt_id = g.prompt_id AND d.instruction_key = g.instruction_key;
