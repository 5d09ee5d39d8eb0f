"""Tables of sentence pairs: their generation, the pairs, their MaxPMI and people's ratings."""

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
    status: text -- `replied`, `refused` by the server's filter, or `failed` (is sent again)
    reply: text? -- the reply as it came; empty when refused, NULL when failed
    finish_reason: text? -- the server's reason why the reply ended or was refused
    n_attempts: int -- attempts, including earlier runs
    n_input_tokens, n_output_tokens: int? [tokens] -- of prompt and reply, as the server counts them
    n_tokens_most: int [tokens] -- of all attempts; an upper bound if the server doesn't count
    seconds: float [s] -- wall time of all attempts, without the waits between them
    error: text? -- error of each attempt without a reply
    run_id: text -- run that sent it last

benchmark_pair: Sentence pairs: two versions of one item, each about one of two groups.
by: benchmark import
key: benchmark / pair_id
    benchmark
    pair_id: text -- stable identifier within the benchmark
    item_id: text -- item of which both are versions; an item of k groups has k (k - 1) / 2 pairs
    template: text -- shared text, with a placeholder such as {pronoun} where they differ
    sentence_a, sentence_b: text -- the two versions
    group_a, group_b: text -- group that each sentence is about, such as `female` and `male`
    baseline_a, baseline_b: text? -- the words that differ in a neutral sentence; see docs/pairs.md
    word: text? -- seed word or occupation the pair was made for
    split: text? -- part of the benchmark, such as `dev` or `test`
    stereotype: text? -- `pro` or `anti` where the source says so
    category: text? -- kind of pair, such as `religion`: metrics have a subset for each
    direction: text? -- `a` or `b`, the sentence that a stereotype favours
    cluster, cluster_2: text? -- clusters of similar pairs, if named at import, see `pair_cell`
    weight: float? -- weight of the pair in its source; metrics count every pair once
    extra: text? -- further columns of the source, as JSON
    is_natural: bool? -- naturalness verdict of its source or build; NULL without one
    pronoun_first: bool -- the sentences differ in their first word, such as a pronoun
    source_file: text -- file the pair came from
    source_row: int -- row in that file, from 1

benchmark_fact: Facts on a benchmark for its card: source, licence, how its pairs were made.
by: benchmark build, benchmark import --recipe FILE
key: benchmark / position
    benchmark
    position: int -- from 1, in the order of the card
    fact: text -- subject of the fact, such as `Licence` or `Written by`
    said: text -- the fact
    run_id: text -- run that made the pairs; facts of other runs do not describe them

pair_association: MaxPMI of each pair against a corpus: the largest lean among the template's words.
by: benchmark constrain
from: word_delta by corpus contrast;
    benchmark_pair by benchmark pair_id of template sentence_a sentence_b
key: corpus benchmark / contrast pair_id
    corpus contrast benchmark pair_id
    max_pmi_nats: float? [nats] -- delta of largest magnitude; NULL without a delta that counts
    max_pmi_word: text? -- the word with the delta of `max_pmi_nats`
    sum_delta_nats: float? [nats] -- sum of the deltas that count
    n_words: int? -- kept tokens of the template; NULL where MaxPMI is imported
    n_words_defined: int? -- words with a delta that counts; NULL where MaxPMI is imported
    n_words_unknown: int? -- the others, which could lean more; NULL for statistics without counts
    least_count: int? [pairs] -- co-occurrences on each side if a delta counts; NULL: every delta

rating: Answers of raters, one row per rater, pair and question.
by: benchmark import-ratings
key: benchmark rater / pair_id question
    benchmark
    design: text? -- how pairs were drawn; shares and agreement are computed within a design
    rater: text -- name of the rater
    pair_id
    question: text -- name of the question, such as `natural` or `neutral`
    answer: text -- `no` or `yes`
    answer_level: int -- rank of the answer from least to most, from 0
    is_yes: bool -- the answer counts as yes
    source_file: text -- file the answer came in
    source_row: int -- row in that file, from 1
    run_id

rating_agreement: Agreement of raters: Krippendorff's alpha per question, also without each rater.
by: benchmark import-ratings
from: rating by benchmark
key: benchmark / design question without_rater
    benchmark
    design: text? -- how pairs were drawn, as in `rating`
    question: text -- name of the question
    without_rater: text -- the rater left out; empty if all are included
    n_raters: int -- raters with an answer
    n_pairs: int -- pairs with two or more answers; others are left out
    n_answers: int -- answers to these pairs
    alpha: float? -- 1 full agreement, 0 chance; NULL where all answers are the same
    alpha_low, alpha_high: float? -- 95% bootstrap interval over pairs; NULL below 10
    gain_low, gain_high: float? -- interval of alpha minus all raters' alpha; Bonferroni
    run_id
""")
