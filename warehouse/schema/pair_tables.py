"""Tables of sentence pairs: how they were generated, the pairs, their MaxPMI in a corpus."""

from __future__ import annotations

from plumbline.warehouse.schema.columns import tables

TABLES = tables("""
generation_request: Every request to a served model, with its reply or its errors.
by: benchmark build
key: benchmark / request_id
    benchmark: text -- its name; `SET/MODEL_KEY`, `perturb/SET`, `choose/BENCHMARK/MODEL_KEY`
    request_id: text -- hash of model, prompt, parameters, purpose, word, pronoun and round
    purpose: text -- `generate`, `revise`, `convert`, `judge`, `perturb`, `continue` or `choose`
    word: text -- seed word; the original name (`perturb`), text's id (`continue`), pair (`choose`)
    pronoun: text -- `she` or `he` as wanted; the new name (`perturb`), side shown first (`choose`)
    round: int -- from 1, one more for each repeat; for `continue`, `choose` the sample's number
    model: text -- model as the server names it
    parameters: text -- temperature, limit of the reply and seed, as JSON
    prompt: text -- the message as sent
    status: text -- `replied`, `refused` by the server's filter, or `failed`: to be sent again
    reply: text? -- the reply as it came; empty when refused, NULL when failed
    finish_reason: text? -- the server's reason why the reply ended or was refused
    n_attempts: int -- attempts, including those of earlier runs
    n_input_tokens, n_output_tokens: int? [tokens] -- of prompt and reply, as the server counts them
    n_tokens_most: int [tokens] -- of all attempts; an upper bound where the server does not count
    cost: float? [currency] -- of `n_tokens_most`, in the price table's currency; NULL without one
    seconds: float [s] -- wall time of all attempts, without the waits between them
    error: text? -- error of each attempt without a reply
    run_id: text -- run that sent it last

benchmark_pair: Sentence pairs: two versions of one item, each about its group.
by: benchmark import
key: benchmark / pair_id
    benchmark
    pair_id: text -- stable identifier within the benchmark
    item_id: text -- item of which both are versions; an item of k groups has k (k - 1) / 2 pairs
    template: text -- shared text, with a placeholder such as {pronoun} where they differ
    sentence_a, sentence_b: text -- the two versions
    group_a, group_b: text -- who each is about, such as `female` and `male`
    word: text? -- seed word or occupation the pair was made for
    split: text? -- part of the benchmark, such as `dev` or `test`
    stereotype: text? -- `pro` or `anti` where the source says so
    category: text? -- kind of pair, such as `religion`: metrics have a subset for each
    direction: text? -- `a` or `b`: the sentence that a stereotype favours
    cluster, cluster_2: text? -- clusters of similar pairs, if named at import, see `pair_cell`
    weight: float? -- weight of the pair in its source; metrics count every pair once
    extra: text? -- further columns of the source, as JSON
    is_natural: bool? -- naturalness verdict of its source or build; NULL without one
    pronoun_first: bool -- the sentences differ from their first word, as with a pronoun
    source_file: text -- file the pair came from
    source_row: int -- row in that file, from 1

benchmark_fact: Facts on a benchmark for its card: source, licence, how its pairs were made.
by: benchmark build, benchmark import --recipe FILE
key: benchmark / position
    benchmark
    position: int -- from 1, in the order of the card
    fact: text -- what it is about, such as `Licence` or `Written by`
    said: text -- the fact
    run_id: text -- run that made the pairs; facts of other runs do not describe them

pair_association: MaxPMI of each pair against a corpus: the largest lean among the template's words.
by: benchmark constrain
key: corpus benchmark / contrast pair_id
    corpus contrast benchmark pair_id
    max_pmi_nats: float? [nats] -- delta of largest magnitude; NULL when no word has one that counts
    max_pmi_word: text? -- the word that decides it
    sum_delta_nats: float? [nats] -- sum of the deltas that count
    n_words: int? -- kept tokens of the template; NULL where MaxPMI is imported
    n_words_defined: int? -- those with a delta that counts; NULL where MaxPMI is imported
    n_words_unknown: int? -- the others, which could lean more; NULL for statistics without counts
    least_count: int? [pairs] -- co-occurrences on each side that a delta needs; NULL without counts
""")
