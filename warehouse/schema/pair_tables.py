"""Declare the tables of sentence pairs, and of models' scores, choices and metrics for pairs."""

from __future__ import annotations

from plumbline.warehouse.schema.columns import tables

TABLES = tables("""
generation_request: Every request to a served model, with its reply or its errors.
by: benchmark build
key: benchmark / request_id
    benchmark: text -- benchmark, or `SET/MODEL_KEY`, `perturb/SET`, `choose/BENCHMARK/MODEL_KEY`
    request_id: text -- hash of model, prompt, parameters, purpose, word, pronoun and round
    purpose: text -- `generate`, `revise`, `convert`, `judge`, `perturb`, `continue` or `choose`
    word: text -- seed word; original name (`perturb`), text's id (`continue`), pair (`choose`)
    pronoun: text -- requested `she` or `he`; new name (`perturb`), side shown first (`choose`)
    round: int -- number of the repeat, from 1; number of the sample (`continue`, `choose`)
    model: text -- model as the server names it
    parameters: text -- temperature, limit and form of the reply, and seed, as JSON
    prompt: text -- the message as sent
    status: text -- `replied`, `refused` by the server's filter, or `failed` (to be sent again)
    reply: text? -- the reply as it came; empty when refused, NULL when failed
    finish_reason: text? -- the server's reason why the reply ended or was refused
    n_attempts: int -- attempts, including earlier runs
    n_input_tokens, n_output_tokens: int? [tokens] -- tokens of prompt and reply, by the server
    n_tokens_most: int [tokens] -- tokens of all attempts; an upper bound if the server doesn't say
    seconds: float [s] -- wall time of all attempts, without the waits between them
    error: text? -- error of each attempt without a reply
    run_id: text -- run that sent it last

benchmark_pair: Sentence pairs: two versions of one item, each about one of two groups.
by: benchmark import
key: benchmark / pair_id
    pair_id: text -- stable identifier within the benchmark
    item_id: text -- item that both are versions of; an item of k groups has k (k - 1) / 2 pairs
    template: text -- shared text, with a placeholder such as {pronoun} where they differ
    sentence_a, sentence_b: text -- the two versions
    group_a, group_b: text -- group that each sentence is about, such as `female` and `male`
    word: text? -- seed word or occupation the pair was made for
    split: text? -- part of the benchmark, such as `dev` or `test`
    stereotype: text? -- `pro` or `anti` if the source says so
    category: text? -- kind of pair, such as `religion`; metrics have a subset for each category
    direction: text? -- `a` or `b`, the sentence that a stereotype favours
    cluster, cluster_2: text? -- clusters of similar pairs, if named at import; see view `pair_cell`
    weight: float? -- weight of the pair in its source; metrics count every pair once
    extra: text? -- further columns of the source, as JSON
    is_natural: bool? -- verdict of its source or chat model on naturalness; NULL without one
    pronoun_first: bool -- the sentences differ in their first word, such as a pronoun
    source_file source_row

benchmark_fact: Facts on a benchmark for its card: source, licence, how its pairs were made.
by: benchmark build, or by `plumbline benchmark import --recipe FILE`
key: benchmark / position
    position: int -- position on the card, from 1
    fact: text -- what the fact is about, such as `Licence` or `Written by`
    said: text -- the fact
    run_id: text -- run that made the pairs that the fact is about

pair_association: MaxPMI of each pair against a corpus: the largest lean among the template's words.
by: benchmark constrain
from: word_delta by corpus contrast;
    benchmark_pair by benchmark pair_id of template sentence_a sentence_b
key: corpus benchmark / contrast pair_id
    corpus contrast benchmark pair_id
    max_pmi_nats: float? [nats] -- delta of largest magnitude; NULL without a delta that counts
    max_pmi_word: text? -- the word with the delta of `max_pmi_nats`
    sum_delta_nats: float? [nats] -- sum of the deltas that count
    n_words: int -- kept tokens of the template
    n_words_defined: int -- words with a delta that counts
    n_words_unknown: int? -- words without such a delta, which could lean more; NULL without counts
    least_count: int? [pairs] -- fewest co-occurrences per side for a delta to count; NULL: none

rating: Answers of raters, one row per rater, pair and question.
by: benchmark import-ratings
key: benchmark rater / pair_id question
    rater: text -- name of the rater
    pair_id
    question: text -- name of the question, such as `natural` or `neutral`
    answer: text -- `no` or `yes`
    answer_level: int -- rank of the answer from least to most, from 0
    is_yes: bool -- the answer counts as yes
    source_file source_row run_id

rating_agreement: Agreement of raters: Krippendorff's alpha per question.
by: benchmark import-ratings
from: rating by benchmark
key: benchmark / question
    question: text -- name of the question
    n_raters: int -- raters with an answer
    n_pairs: int -- pairs with two or more answers; other pairs are left out
    n_answers: int -- answers to these pairs
    alpha: float? -- 1 full agreement, 0 chance; NULL where all answers are the same
    alpha_low, alpha_high: float? -- 95% bootstrap interval over pairs; NULL below 10
    run_id

model: Scoring identities: two models, revisions, dtypes or BOS policies never share a key.
by: score
key: / model_key
    model_key: text -- hash of everything below that can change a score
    model
    revision: text? -- hub revision, or hash of the local weights
    backend: text -- such as `transformers`, `vllm`, `server`; `released`: published scores
    backend_version: text? -- versions of the libraries that computed the scores
    dtype: text? -- dtype of the weights
    bos_policy: text? -- policy by which the context token was chosen
    bos_token_id: int? -- token given as context and never scored
    quantisation: text? -- quantisation method, and the version of the library that applied it
    adapter: text? -- adapter applied, with its hub commit or the hash of its content
    text_form: text? -- `written`: sentences as they are; `released`: as in the released scores
    measure: text? -- what a score is, see docs/models.md; NULL (old rows): `log-likelihood`
    step: int? -- training step, if the checkpoint's revision or directory names it
    n_parameters: int? -- number of parameters
    name: text? -- given by `score --name`; models with the same name are versions of one model
    family: text? -- family of a published model, such as `Pythia`; NULL: not known
    training_text: text? -- as the model's paper says; empty: not published; NULL: not known
    run_id: text -- run that first used it

trained_model: Models that Plumbline trained, and the corpus of each.
by: train
key: model /
    model: text -- name of the model
    revision: text -- hash of weights and tokenizer, as in `model`; training again changes it
    path: text -- directory of the weights
    corpus: text -- corpus it was trained on
    seed: int -- seed of initialisation and order
    n_parameters: int -- number of parameters
    n_steps: int -- optimiser steps
    n_tokens: int [tokens] -- model tokens seen
    loss_start_nats, loss_end_nats: float [nats/token] -- mean loss over the first, last steps
    seconds run_id

pair_score: Log-probability of both sentences of a pair under a model, one row per model and pair.
by: score
from: benchmark_pair by benchmark pair_id of sentence_a sentence_b
key: benchmark model_key / pair_id
    model_key model benchmark pair_id text_id
    logprob_a_nats, logprob_b_nats: float [nats] -- log p(sentence | BOS), or see `model.measure`
    n_tokens_a, n_tokens_b: int? [tokens] -- scored tokens: no BOS, no EOS; NULL where not known
    run_id

metric_value: Metrics, one per row, each with its interval and the options that define it.
by: measure
from: benchmark_pair by benchmark; pair_score by benchmark model_key;
    pair_association by benchmark corpus contrast
key: benchmark / metric model_key groups corpus contrast subset options
    metric: text -- `us`, `pd`, `aufc`, `gap`, `slope`, `correlation`, ...
    model_key: text -- scoring identity; empty when no model is involved
    model: text -- model name; empty when no model is involved
    benchmark
    groups: text -- groups of the pairs, such as `female/male`; empty when no pair is involved
    corpus, contrast: text -- corpus and contrast of the constraint; empty without one
    subset: text -- the pairs, such as `all`, `|max_pmi| <= 0.5`, `pronoun first`
    eta_nats: float? [nats] -- constraint on |MaxPMI|, NULL without one
    epsilon_nats: float? [nats] -- threshold on |log ratio|, NULL where none applies
    value: float? -- value of the metric; NULL when n is 0
    unit: text -- `share`, `percent`, `percentage points`, `nats` ...
    value_se: float? -- standard error in the same unit
    value_low, value_high: float? -- ends of the 95% interval
    interval: text -- method of the interval
    n: int -- number of pairs (or words) that the value is computed from
    df: float? -- degrees of freedom of Student's t in the interval
    n_clusters: int? -- number of clusters; with two kinds of clusters, the smaller number
    clusters: text? -- their kind, such as `word` or `frame, word`; see view `pair_cell`
    cluster_values: text? -- value of each cluster, as JSON, if too few for an interval
    p: float? -- two-sided p-value of no effect; NULL if the metric has no null value
    options: text -- further conventions, as JSON
    run_id

model_rank: Ranks of models on a benchmark, with intervals for all models together.
by: measure, for benchmarks that two models or more scored
from: benchmark_pair by benchmark; pair_score by benchmark
key: benchmark / metric groups model_key
    groups
    metric: text -- `us`, `aufc` or `pd` over all pairs; the largest value has rank 1
    model_key model
    epsilon_nats: float? [nats] -- threshold on |log ratio|, NULL for `aufc`
    value: float -- value of the metric
    rank: int -- rank of the value; equal values share the smallest rank
    rank_low, rank_high: int -- 95% interval of the rank, for all models together
    n_models, n_pairs: int -- models of the benchmark, and pairs that any of them scored
    n_clusters: int -- clusters that differences are tested over, as in `metric_value`
    run_id

benchmark_power: The smallest effect that a benchmark detects with 80% power at the 5% level.
by: measure
from: benchmark_pair by benchmark; pair_score by benchmark
key: benchmark / measure groups
    groups
    measure: text -- `pd`, `us` (against a half), `pd difference`, `us difference` of two models
    unit: text -- `percentage points` or `share`
    smallest: float? -- smallest effect that is detected; NULL: even the largest possible is not
    sd: float -- standard deviation of the measure over pairs; there is no row if it is 0
    icc: float -- correlation of two pairs in the same cluster, median over models
    n_alike: float -- how many other pairs share a cluster with a pair, on average
    n_pairs, n_clusters: int -- pairs, and clusters as in `metric_value`
    df: float -- degrees of freedom of Student's t
    n_models: int -- models that sd and icc are measured on
    run_id

control: Tests of whether a predictor of a model's log ratios adds to the other predictors.
by: measure, where a model and an n-gram of the corpus (train --preset 5gram) scored pairs of words
from: benchmark_pair by benchmark; pair_score by benchmark;
    pair_association by benchmark corpus contrast
key: benchmark / subset model_key groups corpus contrast ngram_key predictor
    subset: text -- form of the lean, as in view `fit_point`
    model_key model benchmark groups corpus contrast
    ngram_key: text -- scoring identity of the n-gram model
    predictor: text -- `delta`, `log frequency`, `n-gram log ratio` or `length`
    n_pairs, n_words: int -- pairs of the regression, and the words that they are clustered by
    n_frames: int -- frames within which pairs are compared; frames of few words are pooled
    coefficient, coefficient_low, coefficient_high: float? -- nats of log ratio per unit
    correlation, correlation_low, correlation_high: float? -- correlation of this predictor alone
    partial_correlation, partial_correlation_low, partial_correlation_high: float? -- others fixed
    r2: float? [share] -- R^2 of all predictors, on pairs whose word was left out of the fit
    gain, gain_low, gain_high: float? [share] -- part of r2 that is lost without this predictor
    verdict: text -- `predicts`, `does not` or `cannot be told`, see docs/models.md
    run_id

pair_choice: Which sentence of a pair a served model chose, one row per request; not in US or PD.
by: score choose
from: benchmark_pair by benchmark pair_id of sentence_a sentence_b
key: benchmark model_key setting / pair_id shown_first ask
    model
    setting: text -- hash of wordings, temperature and the limit of the reply
    pair_id text_id
    shown_first: text -- `a` or `b`, the sentence that was shown first
    ask: int -- number of the request with the pair in this order, from 0
    choice: text? -- `a` or `b`, the sentence that the reply names; NULL for neither
    request_id: text -- row of `generation_request` with the question and the reply
    run_id
""")
