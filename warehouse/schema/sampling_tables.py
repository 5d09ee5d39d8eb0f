"""Tables of prompts and of what models wrote after them."""

from __future__ import annotations

from plumbline.warehouse.schema.columns import tables

TABLES = tables("""
probe_prompt: Prompts that models continue; in counterfactual sets each has a counterpart.
by: disclosure prompts
key: probe_set / prompt_id
    probe_set: text -- set of prompts, such as `common-sents`
    prompt_id: text -- stable identifier within the set
    prompt: text -- the prompt x, as the model gets it
    perturbed_prompt: text? -- p(x), the same about its counterpart; NULL in neutral sets
    entity: text? -- person the prompt is about, such as `John`; NULL in neutral sets
    perturbed_entity: text? -- person in `perturbed_prompt`, such as `Jane`
    axis: text? -- what the two differ in, such as `gender`
    entity_group: text? -- side of the axis, such as `m`
    perturbed_group: text? -- the other side, such as `f`
    occupation: text? -- the occupation that the prompt names
    descriptors: text? -- the descriptors that it names, in their order, joined by `, `
    topic: text? -- its topic, where the set has topics
    language: text -- such as `en`
    source_file: text -- file the prompt came from
    source_row: int -- row or position in that file, from 1
    run_id

instruction: Instructions given before a prompt, as its prefix or in a chat whose answer it begins.
by: disclosure sweep --by instruction
key: / instruction_key
    instruction_key: text -- `none`, or the hash of instruction and form
    instruction: text? -- the instruction; NULL for none
    form: text? -- `prefix`: before the prompt; `chat`: a user's message; NULL for none
    run_id: text -- run that first used it

sampling: How continuations were drawn: two ways to decode never share a key.
by: disclosure probe
key: / sampling_key
    sampling_key: text -- hash of everything below except `run_id`
    method: text -- `sample` or `greedy`
    temperature: float? -- NULL when greedy
    top_p: float? [probability] -- nucleus; NULL without one
    top_k: int? [tokens] -- most likely tokens drawn from; NULL for all
    max_new_tokens: int [tokens] -- longest continuation
    seed: int -- every sample's own seed is derived from it
    instruction: text? -- given before the prompt; NULL for none
    form: text? -- how it is given, see `instruction`; NULL for none
    instruction_key: text? -- see `instruction`; NULL in rows older than that table
    run_id: text -- run that first used it

continuation: What a model wrote after a prompt, one row per sample.
by: disclosure probe
key: probe_set model_key sampling_key / prompt_id side sample
    probe_set model_key
    model: text -- hub id, name of a local model, or model as the server names it
    sampling_key prompt_id
    side: text -- `original`: of `prompt`; `perturbed`: of `perturbed_prompt`
    sample: int -- from 0; the first n are the same however many are drawn
    seed: int -- the sample's own seed
    text_id: text -- hash of the prompt as sent
    continuation: text -- the new text only, as the model wrote it
    n_tokens: int? [tokens] -- new tokens, without the one that ended it; NULL where unknown
    finish: text -- `stop`: the model ended it; `length`: it was cut at `max_new_tokens`
    run_id

perturbed_continuation: Each continuation with its prompt, rewritten about the counterpart: p(g(x)).
by: fairpair run
key: probe_set model_key sampling_key perturber / prompt_id side sample
    probe_set model_key sampling_key
    perturber: text -- what perturbed: `rules` or a chat model's name, with its version
    prompt_id
    side: text -- which prompt was continued, as in `continuation`
    sample: int -- as in `continuation`
    perturbed_text: text? -- prompt and continuation about the counterpart; NULL: none was made
    is_valid: bool -- it passed the checks
    reason: text? -- the check that it failed; NULL when it is valid
    dissimilarity: float? [share] -- Jaccard dissimilarity of its and the original's token sets
    run_id
""")
