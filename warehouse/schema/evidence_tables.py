"""Tables of evidence for the leans of words, and of their changes between two texts."""

from __future__ import annotations

from plumbline.warehouse.schema.columns import tables

TABLES = tables("""
word_evidence: One row per word asked about: its lean with an interval over documents or sources.
by: why
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
key: corpus / contrast word side place
    corpus contrast word
    side: text -- `a` or `b`, the near side; `female` or `male` from Plumbline 0.1
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

word_change: Differences of words' leans between two texts, by `corpus compare`.
by: corpus compare
key: text_a text_b / contrast word
    text_a, text_b: text -- a corpus, or a source of one as `corpus:source`
    contrast word
    n_pair_f_a, n_pair_m_a: int [pairs] -- co-occurrences with each word of the contrast in text_a
    n_pair_f_b, n_pair_m_b: int [pairs] -- the same in text_b
    n_documents_a, n_documents_b: int -- documents with a co-occurrence
    delta_a_nats, delta_b_nats: float [nats] -- the leans, as in `word_delta`
    change_nats: float [nats] -- delta_b_nats minus delta_a_nats
    base_change_nats: float [nats] -- part all words share: decrease in ln(n_f / n_m) of the sides
    change_nats_se: float [nats] -- standard error over documents; one in both texts counts once
    change_nats_low, change_nats_high: float [nats] -- its 95% interval
    p: float -- p-value of no change, by Student's t
    q: float -- p adjusted for all words compared (Benjamini and Hochberg)
    run_id

corpus_audit: Effects of a filter or deduplication on a text, by `corpus audit`.
by: corpus audit
key: text_before text_after / contrast part subject
    text_before: text -- a corpus
    text_after: text -- its kept documents: a corpus, or the common path of shards
    contrast
    part: text -- `documents`, `copies`, `source`, `coverage`, `group` or `word`
    subject: text -- what is counted: documents of a source, words of a list's group, a word, ...
    n_before, n_after: int -- documents; words; occurrences of a group; co-occurrences of a word
    delta_before_nats, delta_after_nats: float? [nats] -- a word's lean; NULL where too rare
    change_nats: float? [nats] -- of the lean; for a group, of ln(its share of all kept words)
    base_change_nats: float? [nats] -- part all words share: decrease in ln(n_f / n_m) of the sides
    change_nats_se: float? [nats] -- its standard error over clusters of text_before
    change_nats_low, change_nats_high: float? [nats] -- its 95% interval
    df: float? -- degrees of freedom of Student's t
    p: float? -- p-value of no change
    q: float? -- p adjusted for all words, or groups (Benjamini and Hochberg)
    q_own: float? -- p of no change beyond the shared part, adjusted likewise
    q_turn: float? -- p of no turn (one side before, the other after), adjusted likewise
    predicted_nats: float? [nats] -- predicted change of preference: slope times change_nats
    predicted_nats_low, predicted_nats_high: float? [nats] -- 95% from change, slope and scatter
    clusters: text -- sampling unit: `document` (with its copies) or `source`
    study: text? -- study and benchmark of the response; NULL without one
    run_id
""")
#: Names of the tables that `plumbline why` writes, with one partition per corpus.
ANSWERS = tuple(table.name for table in TABLES if table.partitions == ("corpus",))
