"""The table of interventions: what was changed in a text, and the model trained on it."""

from __future__ import annotations

from plumbline.warehouse.schema.columns import tables

TABLES = tables("""
intervention_arm: Models trained on changed text, one for each dose and seed.
by: intervene run
key: study / kind dose window_start window_end seed
    study: text -- name of the intervention
    kind: text -- `gender`: she and he exchanged; `aimed`: in some sentences; `placebo`: others
    dose: float -- share of the documents that were changed
    window_start, window_end: float -- first and last step that saw changed text, as shares
    seed: int -- of weights and order; which documents are changed is the same for every seed
    near: text -- comma-separated words: only sentences with one of them were changed; empty: all
    exchanged: text -- the two words of a placebo, with a comma; otherwise empty
    model: text -- name of the trained model, as in `trained_model`
    n_documents, n_changed: int -- documents of the text, and those in which a word was exchanged
    n_changes: int -- words exchanged
    n_undecided: int -- occurrences of "her" left unchanged, as his and him can't be told apart
    run_id
""")
