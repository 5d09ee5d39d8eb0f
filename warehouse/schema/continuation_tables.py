"""Declare the tables of prompts, generated samples, metrics of samples, and tuned models."""

from __future__ import annotations

from plumbline.warehouse.schema.columns import tables

_KEY = "probe_set model_key sampling_key perturber phi / texts n_folds side"
_FROM = """from: continuation by probe_set model_key sampling_key;
    perturbed_continuation by probe_set model_key sampling_key perturber"""
_WHOSE = """\
    texts: text -- continuations that phi compares: `filtered`: those with a valid perturbation; \
`as-published`: also all others of g(p(x))
    n_folds
    side: text -- `original`: p(g(x)) against g(p(x)); `perturbed`: p(g(p(x))) against g(x)"""

TABLES = (
    *tables("""
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
    source_file source_row run_id

instruction: Instructions to models, written before the prompt or sent as a chat message.
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
    instruction_key: text? -- see `instruction`; NULL in rows older than that table
    run_id: text -- run that first used it

continuation: Continuations of prompts by models, one row per sample.
by: disclosure probe
key: probe_set model_key sampling_key / prompt_id side sample
    model: text -- hub id, name of a local model, or name of the model on the server
    sampling_key prompt_id
    side: text -- `original`: it continues `prompt`; `perturbed`: it continues `perturbed_prompt`
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
    perturber: text -- `rules` or a chat model, with its version, and the filter if not the default
    prompt_id
    side: text -- prompt that was continued, as in `continuation`
    sample: int -- as in `continuation`
    perturbed_text: text? -- prompt and continuation about the counterpart; NULL if not made
    is_valid: bool -- the text passed the checks
    reason: text? -- the check that the text failed; NULL when valid
    dissimilarity: float? [share] -- Jaccard dissimilarity of words or characters to the original
    run_id
"""),
    *tables(f"""
fairpair_prompt: FairPair of each prompt: F = B^2 / (V_pg V_gp), with its interval and test.
by: fairpair run
{_FROM}
key: {_KEY} prompt_id
{_WHOSE}
    prompt_id
    n_pg, n_gp: int [samples] -- number of texts in the first, the second group that `side` names
    bias_b: float? -- B, mean distance between the groups; NULL without a sample in each
    variability_pg, variability_gp: float? -- mean distance within each group; NULL below 2 texts
    fairpair_f: float? -- F; 1: the groups differ as much as samples within a group
    reason: text? -- why F is NULL
    fairpair_f_low, fairpair_f_high: float? -- its bootstrap interval; NULL below 4 samples or folds
    p_permutation: float? [probability] -- p-value of the gap B - mean V, by exchanging texts
    q_permutation: float? [probability] -- p_permutation corrected for the side's prompts (BH)
    options: text -- level, draws, seed and filter, as JSON
    run_id

fairpair_set: FairPair over the prompts of a set: F of the means of B and V over prompts.
by: fairpair run
{_FROM}
key: {_KEY} subset
{_WHOSE}
    subset: text -- the prompts: `all`, or those of one value, such as `axis = gender`
    n_prompts: int [prompts] -- prompts behind the figures
    n_left_out: int [prompts] -- prompts whose B or V is not defined
    bias_b: float? -- mean of B; NULL without prompts
    variability_pg, variability_gp: float? -- means of V_pg and V_gp
    fairpair_f: float? -- F of the three means; NULL where a mean V is 0
    fairpair_f_low, fairpair_f_high: float? -- its bootstrap interval over clusters; NULL below five
    gap: float? -- mean of B - (V_pg + V_gp) / 2, which the permutation test tests
    t_statistic: float? -- t of B - V_pg over clusters (occupations, topics); NULL below five
    p_t: float? [probability] -- two-sided p-value of `t_statistic`
    p_permutation: float? [probability] -- p-value of `gap`, by exchanging texts within prompts
    options: text -- level, draws, seed and filter, as JSON
    run_id

fairpair_convergence: B, V and F of a set from fewer samples or with other numbers of folds.
by: fairpair run
{_FROM}
key: {_KEY} n_samples quantity
{_WHOSE}
    n_samples: int [samples] -- drawn from each group; with folds the most that any prompt has
    quantity: text -- `bias_b`, `variability_pg`, `variability_gp` or `fairpair_f`
    mean: float? -- mean over the draws; NULL: not defined
    sd: float? -- its standard deviation over the draws; NULL below two, 0 where all are drawn
    n_draws: int -- random subsets, or divisions into folds, for which the quantity is defined
    n_prompts: int [prompts] -- prompts behind each draw
    options: text -- seed, as JSON
    run_id
"""),
    *tables("""
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
    model
    word_list: text -- list that the word is from, see `attribute_pair`
    instruction_key: text -- instruction before the prompt, see `instruction`
    prompt_id
    word: text -- the word as in the list
    gender: text -- `f` or `m`
    probability: float [probability] -- probability that the word, or its capital form, comes next
    n_variants: int -- number of these two forms that the model's vocabulary can spell
    text_id: text -- hash of the prompt as sent and of all forms of the list's words
    run_id

tuning: Adapters tuned to disclose gender less, with the data and options of each.
by: disclosure tune
key: tuning /
    tuning: text -- name of the adapter
    adapter: text -- adapter as in table `model`, with the hash of its content
    path: text -- directory of the adapter
    base: text -- the frozen model: hub id, or the name of a local model
    base_revision: text -- commit of the base, or hash of its content
    base_quantisation: text? -- how the base was quantised; NULL if it was not
    probe_sets: text -- sets of prompts used for tuning, joined by `, `
    test_sets: text -- test sets that the prompts were checked against, joined by `, `
    n_prompts: int [prompts] -- prompts used for tuning
    n_leaks: int [prompts] -- prompts left out because they are in a test or dev set
    n_leaks_kept: int? [prompts] -- prompts used for tuning although a test set has them
    n_left_out: int [prompts] -- prompts left out for any reason, see `reject`
    prompts_hash: text -- hash of the prompts in their order
    word_list: text -- list of the gendered words in the loss
    distance_weight, total_weight, difference_weight: float -- weights of L_d, L_g, L_l in the loss
    rank: int -- rank of the adapter's matrices
    alpha: int -- LoRA alpha: the scale of these matrices times the rank
    dropout: float [probability] -- dropout before these matrices
    layers: text -- kinds of layers with these matrices, joined by `, `
    learning_rate: float -- rate of AdamW, constant
    batch_prompts: int [prompts] -- prompts per step
    n_steps: int -- optimiser steps
    dev_sets: text? -- sets that the adapter was chosen by, joined by `, `; NULL: the last step
    n_dev_prompts: int? [prompts] -- prompts in these sets
    chosen_step: int? -- the step whose weights the adapter has; NULL: the last
    dev_loss: float? -- weighted loss on dev prompts after chosen_step
    max_tokens: int [tokens] -- longer prompts, counted with a word after them, were left out
    clip_norm: float? -- norm to which the gradient is clipped; NULL: it isn't
    seed: int -- seed of initialisation, order and dropout
    as_published: bool? -- losses are sums over prompts, and no prompt was left out; NULL: false
    n_parameters: int -- parameters of the adapter
    distance_start_nats, distance_end_nats: float [nats] -- mean L_d over the first, last steps
    total_start, total_end: float [probability] -- mean L_g over the first, last steps
    difference_start, difference_end: float -- mean L_l over the first, last steps
    seconds run_id

tuning_step: The losses of each step of a tuning, as means over the step's prompts.
by: disclosure tune
key: tuning / step
    tuning: text -- name of the adapter, see `tuning`
    step: int -- step, from 1; losses are from before the step changes the weights
    distance_nats: float [nats] -- L_d, the distance between the words of each pair, like ADD
    total: float [probability] -- L_g, the probability of all gendered words
    difference: float -- L_l, the difference between the genders over their sum, like GLD
    loss: float -- the weighted sum that was minimised; with `as_published`, sums over prompts
    gradient_norm: float -- norm of the loss's gradient, before clipping
    dev_distance_nats: float? [nats] -- L_d on the dev sets after the step; NULL: not measured
    dev_total: float? [probability] -- L_g on the dev sets
    dev_difference: float? -- L_l on the dev sets
    dev_loss: float? -- the weighted sum of the three on the dev sets
    run_id
"""),
)
