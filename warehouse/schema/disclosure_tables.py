"""Tables of disclosure: gendered words, their probabilities, adapters against disclosure."""

from __future__ import annotations

from plumbline.warehouse.schema.columns import tables

TABLES = tables("""
attribute_pair: The pairs of gendered words that GAS, GLD and ADD are measured with.
by: disclosure probe
key: word_list / pair
    word_list: text -- name of the list
    pair: int -- position in the list, from 1
    female, male: text -- the pair's words; each may be in several pairs
    source: text -- where the list comes from
    run_id

pronoun_probability: Probability that a model continues a prompt with each gendered word.
by: disclosure probe
key: probe_set model_key word_list instruction_key / prompt_id word
    probe_set model_key model
    word_list: text -- list that the word is from, see `attribute_pair`
    instruction_key: text -- instruction before the prompt, see `instruction`
    prompt_id
    word: text -- the word as written in the list
    gender: text -- `f` or `m`
    probability: float [probability] -- that the word, or its capital form, comes next
    n_variants: int -- number of these two forms that the model's vocabulary can spell
    text_id: text -- hash of the prompt as sent and of all forms of the list's words
    run_id

tuning: Adapters tuned to disclose gender less, with the data and options of each.
by: disclosure tune
key: tuning /
    tuning: text -- name of the adapter
    adapter: text -- the adapter as in `model`, with the hash of its content
    path: text -- directory of the adapter
    base: text -- the frozen model: hub id, or the name of a local model
    base_revision: text -- commit of the base, or hash of its content
    base_dtype: text -- type of the base's weights
    base_quantisation: text? -- how the base was quantised; NULL if it was not
    probe_sets: text -- sets of prompts used for tuning, joined by `, `
    test_sets: text -- test sets that the prompts were checked against, joined by `, `
    n_prompts: int [prompts] -- prompts used for tuning
    n_leaks: int [prompts] -- prompts left out because they are in a test or dev set
    n_leaks_kept: int? [prompts] -- prompts used for tuning although a test set has them
    n_left_out: int [prompts] -- prompts left out for any reason, see `reject`
    prompts_hash: text -- hash of the prompts in their order
    word_list: text -- list of the gendered words in the loss
    word_list_hash: text -- hash of these words
    distance_weight, total_weight, difference_weight: float -- of L_d, L_g, L_l; 0: not counted
    distance_smoothing: float [probability] -- e of L_d
    rank: int -- rank of the adapter's matrices
    alpha: int -- scale of these matrices times the rank
    dropout: float [probability] -- dropout before these matrices
    layers: text -- kinds of layers with these matrices, joined by `, `
    learning_rate: float -- rate of AdamW, constant
    batch_prompts: int [prompts] -- prompts per step
    n_steps: int -- optimiser steps
    dev_sets: text? -- sets that the adapter was chosen by, joined by `, `; NULL: the last step
    n_dev_prompts: int? [prompts] -- prompts in these sets
    chosen_step: int? -- the step whose weights the adapter has; NULL: the last
    dev_loss, dev_loss_end: float? -- weighted loss on dev prompts after chosen_step, the last step
    max_tokens: int [tokens] -- prompts longer than this, with a word after them, were left out
    clip_norm: float? -- norm to which the gradient is clipped; NULL: it isn't
    seed: int -- seed of initialisation, order and dropout
    as_published: bool? -- losses were sums, all prompts kept; NULL or false: means, some left out
    n_parameters: int -- parameters of the adapter
    distance_start_nats, distance_end_nats: float [nats] -- mean L_d over the first, last steps
    total_start, total_end: float [probability] -- mean L_g over the first, last steps
    difference_start, difference_end: float -- mean L_l over the first, last steps
    seconds: float [s] -- wall time of the steps
    run_id

tuning_step: The losses of each step of a tuning, as means over the step's prompts.
by: disclosure tune
key: tuning / step
    tuning: text -- name of the adapter, see `tuning`
    step: int -- step, from 1; losses are from before the step changes the weights
    distance_nats: float [nats] -- L_d, the distance of the words of each pair, as ADD
    total: float [probability] -- L_g, the probability of all gendered words
    difference: float -- L_l, the difference between the sides over their sum, as GLD
    loss: float -- weighted sum that was minimised; with `as_published` of sums over prompts
    gradient_norm: float -- norm of the loss's gradient, before clipping
    dev_distance_nats: float? [nats] -- L_d on the dev sets after the step; NULL: not measured
    dev_total: float? [probability] -- L_g on the dev sets
    dev_difference: float? -- L_l on the dev sets
    dev_loss: float? -- the weighted sum on the dev sets
    run_id
""")
