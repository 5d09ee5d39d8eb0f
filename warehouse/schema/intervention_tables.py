"""Tables of a text's effects on a model: interventions, and attribution to documents."""

from __future__ import annotations

from plumbline.warehouse.schema.columns import tables

TABLES = tables("""
intervention_arm: Models trained on changed text, one for each dose and seed.
by: intervene run
key: study / kind dose window_start window_end seed
    study: text -- name of the intervention
    kind: text -- `gender`: gendered words exchanged; `aimed`: in some sentences; `placebo`: others
    dose: float -- share of the documents chosen for the exchange
    window_start, window_end: float -- steps that read changed text, as shares of the training
    seed: int -- of weights and order; which documents are changed is the same for every seed
    near: text -- comma-separated words: only sentences with one of them were changed; empty: all
    exchanged: text -- the two words of a placebo, with a comma; otherwise empty
    model: text -- name of the trained model, as in `trained_model`
    n_documents, n_changed: int -- documents of the text, and those in which a word was exchanged
    n_changes: int -- words exchanged
    n_undecided: int -- occurrences of "her" left, as his and him can't be told apart
    run_id

attribution: Documents, sources and words of a text that made a preference of a model, by method.
by: attribute
key: corpus model_key / query contrast method part place
    corpus model_key model
    query: text -- preference: `word nurse`, `word nurse in winobias`, `benchmark winobias`
    contrast
    benchmark: text? -- whose pairs count; NULL: those of all that are imported
    n_pairs: int -- pairs; the preference is the mean of their log ratios
    preference_nats: float [nats] -- the model's own; above 0: it prefers the female sentences
    method: text -- such as `counts`; see docs/attribution.md
    part: text -- `document`, `source` or `collocate` (a document's score is divided among them)
    place: int -- 1, 2, ...: made the model most female; -1, -2, ...: most male
    name: text -- the source or collocate; of a document its source
    shard: text? -- of a document: file name as given
    source_row: int? -- line or row in it, from 1
    n_documents: int -- documents behind the score
    n_read: int? [tokens] -- that the model read of them; NULL if unknown, and of collocates
    score: float -- above 0: having it makes the model more female
    score_low, score_high: float? -- 95% interval over documents; NULL below two
    share: float? [share] -- its part of the sum of all documents' absolute scores
    unit: text -- of the score
    text_before, keyword, text_after: text? -- of a document: a place of the word, or its beginning
    asked_id: text -- hash of pairs, text, method's options and seed
    run_id

datamodelling_score: Attributions compared with trainings on halves of a text, by method.
by: reproduce attribution
key: corpus / method outcome
    corpus
    method: text -- method of attribution
    outcome: text -- what is predicted, or for whose words the planted source is put first
    score, score_low, score_high: float -- mean rank correlation over halves, or share of the words
    chance: float -- score of a method that knows nothing
    ceiling, ceiling_low, ceiling_high: float? -- score that a perfect prediction can reach
    over_baseline, over_baseline_low, over_baseline_high: float? -- score less that of `baseline`
    baseline: text? -- the baseline that this method is least surely better than
    n_words: int -- words, or 1 of a benchmark
    n_halves: int? -- trainings that were compared
    cpu_seconds: float [s] -- processor time of the method's scores of all words and documents
    is_trusted: bool -- interval above chance, differences from all baselines above 0
    design_sha256: text -- SHA-256 of the pre-specified design, 64 hex digits
    run_id
""")
