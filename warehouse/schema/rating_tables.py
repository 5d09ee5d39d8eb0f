"""Tables of people's ratings of pairs: the questions, the sheets and the answers."""

from __future__ import annotations

from plumbline.warehouse.schema.columns import tables

TABLES = tables("""
rating_question: Questions to raters about the pairs of a benchmark.
by: benchmark export-ratings
key: benchmark / question
    benchmark
    question: text -- its name, such as `natural` or `neutral`
    position: int -- from 1, in the order they are asked
    wording: text -- the question as asked
    answers: text -- the answers from least to most, parted by |
    yes_answers: text -- those that count as yes, parted by |
    run_id

rating_sheet: Pairs on each rater's sheet, one row per rater and pair.
by: benchmark export-ratings
key: benchmark rater / pair_id
    benchmark
    rater: text -- who judges, by the name the coordinator gave
    pair_id
    item: text -- the pair's name on this sheet, which tells nothing about the pair
    position: int -- place on the sheet, from 1; random for each rater
    shown_first: text -- `a` or `b`: the sentence that stands first on the sheet
    text_id: text -- hash of both sentences as shown, as in `pair_score`
    design: text? -- `100 pairs, 6 of 6 raters (hash of raters, seed, ...)`; NULL, no hash: older
    run_id

rating: Answers of raters, one row per rater, pair and question.
by: benchmark import-ratings
key: benchmark rater / pair_id question
    benchmark
    design: text? -- that of the sheet: shares and agreement are within one
    rater: text -- who judged
    pair_id
    question: text -- see `rating_question`
    answer: text -- one of the question's answers
    answer_level: int -- its place among them from least to most, from 0
    is_yes: bool -- it counts as yes
    source_file: text -- file the answer came in
    source_row: int -- row in that file, from 1
    run_id

rating_agreement: Agreement of raters: Krippendorff's alpha per question, also without each rater.
by: benchmark import-ratings
key: benchmark / design question without_rater
    benchmark
    design: text? -- that of the sheets, see `rating_sheet`
    question: text -- see `rating_question`
    without_rater: text -- the rater left out; empty for none
    n_raters: int -- raters with an answer
    n_pairs: int -- pairs with two or more answers, the only ones that count
    n_answers: int -- answers to these pairs
    alpha: float? -- 1 full agreement, 0 chance; NULL where all answers are the same
    alpha_low, alpha_high: float? -- 95% bootstrap interval over pairs; NULL below 10
    gain_low, gain_high: float? -- ends of alpha less all raters' alpha, adjusted for their number
    run_id
""")
