"""Tables of a text's effects on a model: interventions, and attribution to documents."""

from __future__ import annotations

from plumbline.warehouse.schema.columns import tables

TABLES = tables("""
intervention_arm: Models trained on changed text, one for each dose and seed.
by: intervene run
key: study / kind dose window_start window_end seed
    study: text -- name of the intervention
    kind: text -- exchange: `gender`: gendered words; `aimed`: in some sentences; `placebo`: others
    dose: float -- share of the documents chosen for the exchange
    window_start, window_end: float -- range of steps with changed text, as shares of the training
    seed: int -- seed of weights and order; every seed changes the same documents
    near: text -- comma-separated words: only sentences with such a word were changed; empty: all
    exchanged: text -- the two words of a placebo, comma-separated; otherwise empty
    model: text -- name of the trained model, as in `trained_model`
    n_documents, n_changed: int -- documents of the text, and those in which a word was exchanged
    n_changes: int -- words exchanged
    n_undecided: int -- occurrences of "her" left, as his and him can't be told apart
    run_id

attribution: Documents, sources and words of a text to which methods attribute a model's preference.
by: attribute
key: corpus model_key / query contrast method part place
    corpus model_key model
    query: text -- preference: `word nurse`, `word nurse in winobias`, `benchmark winobias`
    contrast
    benchmark: text? -- benchmark whose pairs count; NULL: all imported benchmarks
    n_pairs: int -- pairs; the preference is the mean of their log ratios
    preference_nats: float [nats] -- preference; above 0: for the female sentences
    method: text -- such as `counts`; see docs/attribution.md
    part: text -- `document`, `source` or `collocate` (a document's score is divided among them)
    place: int -- rank; 1, 2, ...: made the model most female; -1, -2, ...: most male
    name: text -- source or collocate; for a document, its source
    shard: text? -- for a document: file name as given
    source_row: int? -- line or row in it, from 1
    n_documents: int -- documents behind the score
    n_read: int? [tokens] -- tokens of them that the model read; NULL if unknown or collocate
    score: float -- above 0: having it makes the model more female
    score_low, score_high: float? -- 95% interval over documents; NULL below two
    share: float? [share] -- part of the sum of all documents' absolute scores
    unit: text -- unit of the score
    text_before, keyword, text_after: text? -- for a document: a place with the word, or its start
    asked_id: text -- hash of pairs, text, method's options and seed
    run_id

datamodelling_score: Attributions compared with trainings on halves of a text, by method.
by: reproduce attribution
key: corpus / method outcome
    corpus
    method: text -- method of attribution
    outcome: text -- predicted outcome, or words for which the planted source should be first
    score, score_low, score_high: float -- mean rank correlation over halves, or share of words
    chance: float -- score of a method that knows nothing
    ceiling, ceiling_low, ceiling_high: float? -- score that a perfect prediction can reach
    over_baseline, over_baseline_low, over_baseline_high: float? -- score minus the baseline's score
    baseline: text? -- the baseline with the weakest evidence that this method is better
    n_words: int -- words, or 1 for a benchmark
    n_halves: int? -- trainings that were compared
    cpu_seconds: float [s] -- processor time to score all documents for all words
    is_trusted: bool -- interval above chance, differences from all baselines above 0
    design_sha256: text -- SHA-256 of the pre-specified design, 64 hex digits
    run_id
""")
