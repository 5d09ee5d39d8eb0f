"""Declare the tables of runs, corpora, word counts, and how strongly words lean to a gender."""

from __future__ import annotations

from plumbline.warehouse.schema.columns import tables

TABLES = tables("""
run: One row per command that wrote to the warehouse: its options, versions and outcome. A row with
status `running` whose process has ended belongs to a killed command.
by: any command that writes
key: / run_id
    run_id: text -- time-ordered identifier; every file's metadata names its run
    command: text -- the step, such as `corpus count`
    status: text -- `running`, `finished`, `failed`, or `interrupted` (can be resumed)
    started_at: time [UTC] -- start
    ended_at: time? [UTC] -- end; NULL while the run lasts or if it was killed
    seconds: float? [s] -- wall time; NULL like `ended_at`
    git_commit: text? -- commit of the code, when it runs from a checkout
    config_hash: text -- hash of `config` without `joined-steps`
    config: text -- options as JSON, including seeds
    packages: text -- versions of the packages on which results depend, as JSON
    error: text? -- one line: what failed; while it runs, its process and host
    author: text? -- value of PLUMBLINE_AUTHOR at the start; NULL if unset

corpus: One row per corpus: how it was counted and its totals (before any filtering or pruning).
by: corpus count
key: corpus /
    corpus: text -- name given by the user
    source: text -- `counted` from shards or `imported` from published statistics
    rule: text? -- counting rule, `pairs` or `windows`
    window_tokens: int? [tokens] -- width of the window in kept tokens
    targets: text? -- name of the target word list
    targets_hash: text? -- hash of its words and weights, which are in `word_list`
    tokenizer: text? -- version of the token rules
    language: text? -- language of the text, a code or a file's name; NULL for English
    language_file: text? -- text of the language's TOML file; NULL for English
    text_field: text? -- field of the records that holds the text; NULL for `text`
    source_field: text? -- field that names a document's source; NULL if counted without evidence
    n_shards: int -- shards counted
    n_shards_failed: int -- shards that were damaged or had no usable document; not in the counts
    n_documents: int? -- documents counted; NULL if imported statistics don't say
    n_rejected: int -- documents rejected, each a row in `reject`
    n_tokens: int? [tokens] -- word tokens before stop words are dropped; NULL if imported
    n_kept_tokens: int [tokens] -- tokens after stop words are dropped, including pruned words
    n_words: int? -- distinct words counted, including pruned words; NULL if not known
    n_pairs: int? [pairs] -- all co-occurrences, not only with targets; NULL if not known
    min_count: int? [tokens] -- rarer words are pruned, unless in `word_list`; NULL if imported
    n_words_kept: int -- distinct words that were not pruned: the rows of `word_count`
    n_tokens_pruned: int [tokens] -- `n_kept_tokens` minus the sum of `n_word`
    run_id

word_list: The word list a corpus was counted with and those added later, one row per pair or
unpaired word.
by: corpus count
key: corpus / word_list position
    word_list: text -- name of the list
    position: int -- position in the list, from 1
    word_a, word_b: text? -- words of the pair
    weight: float? -- weight of the pair in the list's mean (Eq. 4)
    unpaired: text? -- word that is counted without a contrast
    source: text -- where the list comes from
    group_a, group_b: text? -- names of the pairs' groups; NULL if the list names none

corpus_shard: The counting ledger, one row per shard: documents in = counted + rejected, always.
by: corpus count
key: corpus / shard
    shard: text -- file name as given
    fingerprint: text -- hash of the file's bytes; for a remote file, of address, size and ETag
    status: text -- `counted`, or `failed`: unreadable, or without a document that could be used
    error: text? -- why it failed
    n_bytes: int [bytes] -- size of the file; 0 if it can't be found
    n_documents_in: int -- documents read
    n_documents: int -- documents counted
    n_rejected: int -- documents rejected
    n_tokens: int [tokens] -- word tokens before stop words are dropped
    n_kept_tokens: int [tokens] -- tokens after stop words are dropped
    n_pairs: int [pairs] -- all co-occurrences under the rule
    seconds run_id

reject: Input that was not used, and why: documents, rows of files, pairs that weren't scored.
by: any command that leaves out a part of its input
key: stage subject / source_file source_row reason
    stage: text -- the step, such as `count`, `benchmark`, `prompts`, `score`, `probe` or `tune`
    subject: text -- the corpus, benchmark, set, model, step or adapter; several joined by `/`
    source_file: text -- file as given; the `request_id` of a sentence that a model wrote
    source_row: int -- line or row, from 1; the position of a sentence in the reply
    reason: text -- what was wrong and what was expected
    excerpt: text -- the start of the input, made printable
    text_id: text? -- stage `score`: hash of the pair's sentences, as in `pair_score`
    run_id

word_count: Occurrences of every kept word of a corpus, except those rarer than `min_count`.
by: corpus count
key: corpus / word
    word: text -- kept token, lowercase
    n_word: int [tokens] -- occurrences

pair_count: Co-occurrences of every word of `word_count` with every target word.
by: corpus count
key: corpus / word target
    rule: text -- `pairs`: position pairs at most window-1 apart; `windows`: windows with both
    window_tokens: int [tokens] -- width of the window in kept tokens
    word target
    n_pair: int [pairs] -- co-occurrences, at least 1

word_association: PMI of every word with every target it occurs with, and the counts behind it.
by: corpus associate
from: word_count by corpus; pair_count by corpus
key: corpus / word target
    target n_word
    n_target: int [tokens] -- occurrences of the target
    n_pair: int [pairs] -- co-occurrences, at least 1
    pmi_nats: float [nats] -- ln(p(w,g) / (p(w) p(g)))
    pmi_nats_se: float [nats] -- its standard error from the counts, see `jobs/association`

word_delta: Lean of every word: PMI with the first minus PMI with the second word of a contrast.
by: corpus associate
from: word_count by corpus; pair_count by corpus
key: corpus / contrast word
    contrast: text -- a pair such as `she/he`, or a list's mean `gendered` or sum `gendered-sum`
    word
    n_word: int? [tokens] -- occurrences of the word
    n_pair_f, n_pair_m: int? [pairs] -- co-occurrences with each side's words, in defined pairs
    n_defined: int -- pairs of the contrast for which the word has both counts
    delta_nats: float [nats] -- the lean: positive to the first side, negative to the second
    delta_nats_se: float? [nats] -- its standard error from the counts; NULL if unknown

word_bound: Interval of the lean of every word that co-occurs with a contrast, also of words without
a delta, which co-occur with one side only. The contrast's own words have no rows.
by: corpus associate
from: word_count by corpus; pair_count by corpus
key: corpus / contrast word
    n_word
    n_pair_f, n_pair_m: int [pairs] -- co-occurrences with all words of the first, the second side
    sides_nats: float? [nats] -- ln(n_pair_f / n_pair_m) - ln(N_f / N_m); NULL if a count is 0
    sides_nats_low, sides_nats_high: float [nats] -- 95% interval; infinite if a count is 0
    p: float -- p-value of no lean, by the exact test
    q: float -- p corrected for the words of this contrast (Benjamini and Hochberg)

vocabulary: Every word of a corpus, and whether and why it is a candidate seed word.
by: corpus words
from: word_count by corpus
key: corpus / word
    n_word
    is_kept: bool -- the word is a candidate
    reason: text -- `not a-z`, `not English` or `rare` if left out; else the check that kept it
    language_score: float? [probability] -- probability of English, by fastText; NULL if not checked
    has_synset: bool? -- the word or a base form is in WordNet; NULL if not checked
    checks: text -- the checks: `fastText`, `WordNet` or both; `any language` if there were none
    run_id: text -- run that wrote it; its `config` has the limits and the missing checks

seed_word: Words sampled from those that lean least, to write sentences with.
by: corpus words
from: vocabulary by corpus; word_delta by corpus contrast
key: corpus / contrast seed word
    seed: int -- seed of the sample; samples of other seeds are kept
    position: int -- position in the sample, from 1: the first n are the sample of n words
    word
    n_word: int? [tokens] -- occurrences of the word
    delta_nats: float [nats] -- its lean
    low_nats, high_nats: float [nats] -- ends of the interval around 0 that was sampled from
    run_id

seed_verdict: A person's verdicts on words of a corpus. New samples exclude rejected words.
by: corpus words
key: corpus / word
    verdict: text -- `accepted` or `rejected`, the latest one
    why: text? -- the reason given
    vetted_at: time [UTC] -- time of the verdict
    run_id

planted_word: True associations with she/he of a closed-world corpus, as its writer planted them.
by: corpus demo
key: corpus / word
    world: text -- `straight`, or `swapped` (she and he exchanged)
    word: text -- content word of the lexicon
    word_class: text -- slot class of the word in the grammar
    planted_delta_nats: float [nats] -- ln(p(word | she) / p(word | he)) used by the writer

word_evidence: One row per word asked about: its lean with an interval over documents or sources.
by: why
from: corpus by corpus; word_delta by corpus contrast
key: corpus / contrast word
    n_word
    per_million: float [1e-6] -- occurrences per million kept tokens of the corpus
    frequency_rank: int -- 1 for the most frequent word of the corpus
    pmi_f_nats, pmi_m_nats: float? [nats] -- PMI with each word of a pair; NULL: no pair, or no PMI
    n_documents: int -- documents with a co-occurrence that counts
    clusters: text -- sampling unit of the interval: `document` or `source`
    n_clusters: int -- units with a co-occurrence that counts
    n_pair_f, n_pair_m: int [pairs] -- co-occurrences with each side, in defined pairs if any
    n_defined: int -- pairs of the contrast for which the word has both counts
    delta_nats: float? [nats] -- its lean, as in `word_delta`; NULL without a defined pair
    delta_nats_se: float? [nats] -- standard error over clusters; NULL below two of them
    delta_nats_low, delta_nats_high: float? [nats] -- 95% interval; NULL below five clusters
    p: float? -- p-value of no lean: t over clusters, or the exact test without a defined pair
    share_copied: float? -- share of co-occurrences in documents that occur more than once
    share_often: float? -- share in documents that occur more than ten times
    run_id
    side_a, side_b: text? -- names of the sides: a pair's words, or a list's groups

word_copies: The lean of a word if copies of a document count once.
by: why WORD
from: corpus by corpus; word_delta by corpus contrast
key: corpus / contrast word counted
    counted: text -- `copies once`: documents with the same kept tokens count as one
    n_documents: int -- documents with a co-occurrence
    n_pair_f, n_pair_m: int [pairs] -- co-occurrences, as in `word_evidence`
    delta_nats: float? [nats] -- its lean; NULL without a defined pair
    delta_nats_low, delta_nats_high: float? [nats] -- 95% interval, clusters as in `word_evidence`
    run_id

word_source: The lean of a word in the documents of a source, and in all others.
by: why
from: corpus by corpus; word_delta by corpus contrast
key: corpus / contrast word source
    source: text -- value of `corpus.source_field`, `(none)`, or `other` (too long or too many)
    n_documents: int -- documents with a co-occurrence
    n_word
    n_pair_f, n_pair_m: int [pairs] -- co-occurrences, as in `word_evidence`
    delta_nats: float? [nats] -- lean in this source alone; NULL without a defined pair
    delta_nats_low, delta_nats_high: float? [nats] -- 95% interval over documents
    delta_without_nats: float? [nats] -- lean in the corpus without this source
    delta_without_nats_low, delta_without_nats_high: float? [nats] -- its 95% interval
    run_id

word_collocate: Words around a word, with log odds: first side against second; at most 20 for each.
by: why WORD
from: corpus by corpus; word_delta by corpus contrast
key: corpus / contrast word collocate
    collocate: text -- word in the window around occurrences that are near a side
    n_f, n_m: int -- its occurrences where the word is near the first, the second side
    log_odds_nats: float [nats] -- above 0: more around the first side; with a Dirichlet prior
    log_odds_nats_se: float [nats] -- its standard error
    log_odds_nats_low, log_odds_nats_high: float [nats] -- its 95% interval
    q: float -- false discovery rate among collocates with at least its |z| (BH)
    run_id

word_snippet: A sample of the occurrences of a word near each side of a contrast, with their text.
by: why
from: corpus by corpus; word_delta by corpus contrast
key: corpus / contrast word side place
    side: text -- `a` or `b`, the side that the word is near
    place: int -- place in the sample, from 1: the first n are the sample of n
    seed: int -- seed of the sample
    target: text -- the nearest word of that side
    text_before, keyword, text_after: text -- text of the shard, with white space joined
    shard: text -- file name as given
    source_row: int -- line or row in it, from 1
    source: text? -- source of the document
    file: text? -- file of the document, as `corpus pack` noted it; NULL if unknown
    position: int [tokens] -- kept tokens before the word in its document
    n_copies: int -- documents of the corpus with the same kept tokens
    run_id
""")

#: Names of the tables that `plumbline why` writes, with one partition per corpus.
ANSWERS = tuple(
    table.name
    for table in TABLES
    if table.filled_by.startswith("why") and table.partitions == ("corpus",)
)
