"""Tables of evidence for the leans of words."""

from __future__ import annotations

from plumbline.warehouse.schema.columns import tables

TABLES = tables("""
word_evidence: One row per word asked about: its lean with an interval over documents or sources.
by: why
from: corpus by corpus; word_delta by corpus contrast
key: corpus / contrast word
    corpus contrast word
    n_word: int [tokens] -- occurrences of the word
    per_million: float [1e-6] -- occurrences per million kept tokens of the corpus
    frequency_rank: int -- 1 for the most frequent word of the corpus
    pmi_f_nats, pmi_m_nats: float? [nats] -- PMI with a pair's words; NULL: a list, or none near
    n_documents: int -- documents with a co-occurrence that counts
    clusters: text -- sampling unit of the interval: `document` or `source`
    n_clusters: int -- units with a co-occurrence that counts
    n_pair_f, n_pair_m: int [pairs] -- with each side of defined pairs, else of all pairs
    n_defined: int -- pairs of the contrast for which the word has both counts
    delta_nats: float? [nats] -- its lean, as in `word_delta`; NULL without a defined pair
    delta_nats_se: float? [nats] -- standard error over clusters; NULL below two of them
    delta_nats_count_se: float? [nats] -- standard error from the counts, as in `word_delta`
    delta_nats_low, delta_nats_high: float? [nats] -- 95% interval; NULL below five clusters
    p: float? -- p-value of no lean: t over clusters; without a defined pair the exact test
    share_copied: float? -- share of co-occurrences in documents that occur more than once
    share_often: float? -- share in documents that occur more than ten times
    run_id
    side_a, side_b: text? -- names of the sides: a pair's words, or a list's groups

word_copies: The lean of a word if copies of a document, or also near copies, count once.
by: why WORD
from: corpus by corpus; word_delta by corpus contrast
key: corpus / contrast word counted
    corpus contrast word
    counted: text -- `copies once`: same kept tokens; `near copies once`: 5-word Jaccard >= 0.5
    n_documents: int -- documents with a co-occurrence
    n_pair_f, n_pair_m: int [pairs] -- co-occurrences, as in `word_evidence`
    delta_nats: float? [nats] -- its lean; NULL without a defined pair
    delta_nats_low, delta_nats_high: float? [nats] -- 95% interval, clusters as in `word_evidence`
    run_id

word_source: The lean of a word in the documents of a source, and in all others.
by: why
from: corpus by corpus; word_delta by corpus contrast
key: corpus / contrast word source
    corpus contrast word
    source: text -- value of `corpus.source_field`; `(none)`; `other`: too long, or after 1,000
    n_documents: int -- documents with a co-occurrence
    n_word: int [tokens] -- occurrences of the word
    n_pair_f, n_pair_m: int [pairs] -- co-occurrences, as in `word_evidence`
    delta_nats: float? [nats] -- lean in this source alone; NULL without a defined pair
    delta_nats_low, delta_nats_high: float? [nats] -- 95% interval over documents
    delta_without_nats: float? [nats] -- lean in the corpus without this source
    delta_without_nats_low, delta_without_nats_high: float? [nats] -- 95%, over clusters as above
    run_id

word_collocate: Words around a word, with log odds: first side against second; at most 20 for each.
by: why WORD
from: corpus by corpus; word_delta by corpus contrast
key: corpus / contrast word collocate
    corpus contrast word
    collocate: text -- word less than a window from an occurrence that is near a side
    n_f, n_m: int -- its occurrences around the word near the first, the second side
    log_odds_nats: float [nats] -- above 0: more near the first side; informative Dirichlet prior
    log_odds_nats_se: float [nats] -- its standard error
    log_odds_nats_low, log_odds_nats_high: float [nats] -- its 95% interval
    q: float -- false discovery rate among collocates with at least its |z| (BH)
    run_id

word_snippet: A sample of the occurrences of a word near each side of a contrast, with their text.
by: why
from: corpus by corpus; word_delta by corpus contrast
key: corpus / contrast word side place
    corpus contrast word
    side: text -- `a` or `b`, the near side
    place: int -- place in the sample, from 1: the first n are the sample of n
    seed: int -- seed of the sample
    target: text -- the nearest word of that side
    text_before, keyword, text_after: text -- text of the shard, with runs of blanks joined
    is_text: bool -- false: the shard is gone or changed, and the text is kept tokens
    shard: text -- file name as given
    source_row: int -- line or row in it, from 1
    source: text? -- source of the document
    file: text? -- file of the document, as `corpus pack` noted it; NULL if unknown
    position: int [tokens] -- kept tokens before the word in its document
    n_copies: int -- documents of the corpus with the same kept tokens
    run_id
""")
#: Names of the tables that `plumbline why` writes, with one partition per corpus.
ANSWERS = tuple(table.name for table in TABLES if table.partitions == ("corpus",))
