"""Tables of FairPair: bias against sampling noise, by prompt, by set, and as samples grow."""

from __future__ import annotations

from plumbline.warehouse.schema.columns import tables

_TEXTS = (
    "texts: text -- what phi compares: `filtered`: continuations, only samples with a valid "
    "perturbation; `as-published`: all of g(p(x)) too"
)
_KEY = "probe_set model_key sampling_key perturber phi / texts n_folds side"
_WHOSE = f"""    probe_set model_key sampling_key
    perturber: text -- see `perturbed_continuation`
    phi: text -- scoring function, such as `jaccard`
    {_TEXTS}
    n_folds: int -- folds a group was combined into; 0: single samples
    side: text -- `original`: p(g(x)) against g(p(x)); `perturbed`: p(g(p(x))) against g(x)"""

TABLES = tables(f"""
fairpair_prompt: FairPair of each prompt: F = B^2 / (V_pg V_gp), with its interval and test.
by: fairpair run
from: continuation by probe_set model_key sampling_key;
    perturbed_continuation by probe_set model_key sampling_key perturber
key: {_KEY} prompt_id
{_WHOSE}
    prompt_id
    n_pg, n_gp: int [samples] -- valid p(g(x)), g(p(x)); on `perturbed` p(g(p(x))), g(x)
    bias_b: float? -- B, mean distance between the groups; NULL without a sample in each
    variability_pg, variability_gp: float? -- mean distance within p(g(x)), g(p(x)); NULL below 2
    fairpair_f: float? -- F; 1: groups differ as much as samples within a group
    reason: text? -- why F is NULL
    fairpair_f_low, fairpair_f_high: float? -- its bootstrap interval; NULL below 4 samples or folds
    p_permutation: float? [probability] -- that exchanged groups give as large a gap B - mean V
    q_permutation: float? [probability] -- p_permutation, Benjamini-Hochberg over the side's prompts
    options: text -- level, draws, seed and filter, as JSON
    run_id

fairpair_set: FairPair over the prompts of a set: F of the means of B and V over prompts.
by: fairpair run
from: continuation by probe_set model_key sampling_key;
    perturbed_continuation by probe_set model_key sampling_key perturber
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
    t_statistic: float? -- of B - V_pg over clusters (occupations, topics); NULL below five
    p_t: float? [probability] -- two-sided
    p_permutation: float? [probability] -- that groups exchanged within prompts give such a gap
    options: text -- level, draws, seed and filter, as JSON
    run_id

fairpair_convergence: B, V and F of a set from fewer samples or with other numbers of folds.
by: fairpair run
from: continuation by probe_set model_key sampling_key;
    perturbed_continuation by probe_set model_key sampling_key perturber
key: {_KEY} n_samples quantity
{_WHOSE}
    n_samples: int [samples] -- drawn from each group; with folds the largest number of a prompt
    quantity: text -- `bias_b`, `variability_pg`, `variability_gp` or `fairpair_f`
    mean: float? -- mean over the draws; NULL: not defined
    sd: float? -- its standard deviation over the draws; NULL below two, 0 where all are drawn
    n_draws: int -- random subsets or divisions into folds for which it is defined
    n_prompts: int [prompts] -- prompts behind each draw
    options: text -- seed, as JSON
    run_id

fairpair_calibration: FairPair under the null: between halves of each prompt's g(p(x)) or g(x).
by: fairpair run
from: continuation by probe_set model_key sampling_key;
    perturbed_continuation by probe_set model_key sampling_key perturber
key: {_KEY} split
{_WHOSE}
    split: int -- number, from 0, of the random split of each prompt's g(p(x)) or g(x)
    n_prompts: int [prompts] -- prompts behind the figures
    n_left_out: int [prompts] -- prompts whose B or V is undefined, as with fewer than four samples
    fairpair_f: float? -- F of the means over prompts, 1 apart from chance; NULL: undefined
    fairpair_f_low, fairpair_f_high: float? -- its bootstrap interval over prompts; NULL below two
    p_t: float? [probability] -- of the t-test over prompts, see `fairpair_set`
    p_permutation: float? [probability] -- of the permutation test over prompts
    alpha: float [probability] -- level of the tests in `n_below` and `n_found`
    n_below: int [prompts] -- prompts whose own p-value is at most `alpha`
    n_found: int [prompts] -- the same after Benjamini-Hochberg
    n_intervals: int [prompts] -- prompts with an interval for F
    n_holding: int [prompts] -- prompts whose interval contains 1
    options: text -- splits, level, draws, seed and filter, as JSON
    run_id
""")
