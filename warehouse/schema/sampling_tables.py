"""Tables of prompts, decoding settings and continuations."""

from __future__ import annotations

from plumbline.warehouse.schema.columns import tables

TABLES = tables("""
probe_prompt: Prompts that models continue; in counterfactual sets each has a counterpart.
by: disclosure prompts
key: probe_set / prompt_id
    probe_set: text -- set of prompts, such as `common-sents`
    prompt_id: text -- stable identifier within the set
    prompt: text -- the prompt x, as the model gets it
    perturbed_prompt: text? -- p(x), the prompt about the counterpart; NULL in neutral sets
    entity: text? -- person the prompt is about, such as `John`; NULL in neutral sets
    perturbed_entity: text? -- person in `perturbed_prompt`, such as `Jane`
    axis: text? -- attribute in which the two people differ, such as `gender`
    entity_group: text? -- group of `entity`, such as `m`
    perturbed_group: text? -- group of `perturbed_entity`, such as `f`
    occupation: text? -- the occupation that the prompt names
    descriptors: text? -- descriptors in the prompt, in their order, joined by `, `
    topic: text? -- topic of the prompt, if the set has topics
    language: text -- such as `en`
    source_file: text -- file the prompt came from
    source_row: int -- row or position in that file, from 1
    run_id

instruction: Instructions to models: before the prompt, or in a chat in which it begins the answer.
by: disclosure sweep --by instruction
key: / instruction_key
    instruction_key: text -- `none`, or the hash of instruction and form
    instruction: text? -- the instruction; NULL for none
    form: text? -- `prefix`: before the prompt; `chat`: a user's message; NULL for none
    run_id: text -- run that first used it

sampling: Decoding settings of continuations; different settings have different keys.
by: disclosure probe
key: / sampling_key
    sampling_key: text -- hash of the settings below
    method: text -- `sample` or `greedy`
    temperature: float? -- NULL when greedy
    top_p: float? [probability] -- nucleus; NULL without nucleus sampling
    top_k: int? [tokens] -- number of most likely tokens to draw from; NULL for all
    max_new_tokens: int [tokens] -- longest continuation
    seed: int -- every sample's own seed is derived from it; 0 when greedy
    instruction: text? -- instruction before the prompt; NULL for none
    form: text? -- form of the instruction, see `instruction`; NULL for none
    instruction_key: text? -- see `instruction`; NULL in rows from before that table
    run_id: text -- run that first used it

continuation: Continuations of prompts by models, one row per sample.
by: disclosure probe
key: probe_set model_key sampling_key / prompt_id side sample
    probe_set model_key
    model: text -- hub id, name of a local model, or model as the server names it
    sampling_key prompt_id
    side: text -- `original`: of `prompt`; `perturbed`: of `perturbed_prompt`
    sample: int -- number from 0; drawing more samples leaves the first ones unchanged
    seed: int -- the sample's own seed
    text_id: text -- hash of the prompt as sent
    continuation: text -- the new text only, as the model wrote it
    n_tokens: int? [tokens] -- new tokens, without the end token; NULL where unknown
    finish: text -- `stop`: the model ended it; `length`: it was cut at `max_new_tokens`
    run_id

perturbed_continuation: Each prompt and continuation, rewritten about the counterpart: p(g(x)).
by: fairpair run
key: probe_set model_key sampling_key perturber / prompt_id side sample
    probe_set model_key sampling_key
    perturber: text -- `rules` or a chat model, with version, and unit and limit of another filter
    prompt_id
    side: text -- prompt that was continued, as in `continuation`
    sample: int -- as in `continuation`
    perturbed_text: text? -- prompt and continuation about the counterpart; NULL if none was made
    is_valid: bool -- the text passed the checks
    reason: text? -- the check that the text failed; NULL when valid
    dissimilarity: float? [share] -- Jaccard dissimilarity to the original, of words or characters
    run_id
""")
