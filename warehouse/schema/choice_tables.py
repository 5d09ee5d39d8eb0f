"""Tables of forced choices: the sentence that a model chooses from each pair when asked."""

from __future__ import annotations

from plumbline.warehouse.schema.columns import tables

TABLES = tables("""
pair_choice: Sentences that served models chose from pairs, one row per ask; no figure of US or PD.
by: score choose
key: benchmark model_key setting / pair_id shown_first ask
    benchmark model_key model
    setting: text -- hash of the wordings, the temperature and the longest reply
    pair_id
    text_id: text -- hash of both sentences as asked about, as in `pair_score`
    shown_first: text -- `a` or `b`: the sentence that was shown first
    ask: int -- number of the ask of the pair in this order, from 0
    choice: text? -- `a` or `b`, the sentence that the reply names; NULL for neither
    request_id: text -- its row in `generation_request`, with the question and the reply
    run_id
""")
