"""A written world in which every word's lean towards she or he is known exactly.

**What is planted.** A document is about one person. A fair coin decides the person's gender g; the
sentence frames are drawn without regard to g; each slot of a frame is filled from its word class
with probability p(w | g). The planted lean of a word is

    planted_delta_nats(w) = ln( p(w | she) / p(w | he) )

taken from the very probabilities the writer samples with, normalisation included. Within a class,
words come in pairs of equal frequency with leans d and -d, so that p(w | she) = b(1 + tanh(d/2))
and p(w | he) = b(1 - tanh(d/2)) sum to one by themselves, a word's frequency b over both genders
does not depend on its lean, and fixed words of the frames have a lean of exactly 0.

**What a corpus count should find.** All she and he tokens of a document belong to its person, and
windows do not cross documents, so the expected co-occurrences satisfy c(w,she)/n(she) :
c(w,he)/n(he) = p(w|she) : p(w|he). Hence PMI(w,she) - PMI(w,he) estimates the planted lean with
slope 1, and what keeps the rank correlation under 1 is sampling noise alone.

**What a perfect learner of the text should prefer.** Under this process the frame carries no
information about g, and content words are independent given g. For a sentence pair that differs
only in its pronouns,

    ln p(F) / p(M) = ln p(she)/p(he) + sum of planted_delta_nats over its content words,

wherever the pronoun stands: before the word the lean sits in p(word | pronoun), after it in
p(pronoun | word), and the joint is the same. The prior is ln(1/1) = 0. The benchmark's frames hold
one tested word among fixed words of lean 0, so its pairs have a perfect log ratio equal to that
word's planted lean (``truth.perfect_log_ratio_nats``).

**How to read a model.** Regress its log ratio on the planted lean. Slope 1: it copies the text's
lean. Slope 0: it ignores it. Between: it has learned part of it (too little training shrinks the
slope as well, so a slope under 1 is not evidence of fairness). Above 1: it amplifies. The benchmark
uses frames that the corpus never shows, so the slope also holds what a model fails to carry over to
new sentences. An intercept is a preference for one pronoun whatever the word: the plant has none.
An interval over words holds the spread between words, not that between trainings: the models of the
two worlds, alike in everything but the pronouns, can differ by more than either one's interval.

**Why two worlds.** ``swapped`` is the same text with she and he exchanged. Whatever in the result
comes from the frames, the tokenizer, the seed or the words' own spelling stays; only the lean
turns round. A slope that changes sign is caused by the planted associations and by nothing else.

**The control.** ``mixed`` is the same text again, with she and he exchanged in half of the
documents, by a coin for each. A document is still about one person, its words still depend on one
another through the gender it was drawn for, but no pronoun depends on a word: every lean is 0. A
measure of bias that finds one here finds chance, or itself.
"""
