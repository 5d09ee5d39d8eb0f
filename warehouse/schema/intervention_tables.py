"""The table of interventions: what was changed in a text, and the model trained on it."""

from __future__ import annotations

from plumbline.warehouse.schema.columns import tables

TABLES = tables("""
intervention_arm: Trainings of interventions: each a dose and a seed, and the model that came of it.
by: intervene run
key: study / kind dose window_start window_end seed
    study: text -- name of the intervention
    kind: text -- `gender`: she and he exchanged; `aimed`: only near words; `placebo`: two others
    dose: float -- share of the documents that were changed
    window_start, window_end: float -- shares of the steps between which the text was changed
    seed: int -- of weights and order; which documents are changed is the same for every seed
    near: text -- words with commas: only sentences with one of them were changed; empty: all
    exchanged: text -- the two words of a placebo, with a comma; otherwise empty
    model: text -- name of the trained model, as in `trained_model`
    n_documents, n_changed: int -- documents of the text, and those in which a word was exchanged
    n_changes: int -- words exchanged
    n_undecided: int -- "her" left as they were, since his or him can't be decided
    run_id
""")
