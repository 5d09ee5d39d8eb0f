"""The closed world: a made-up corpus in which every word's lean to she or he is known exactly.

**What is planted.** A document is about one person, whose gender g is decided by a fair coin.
Sentence frames are drawn without regard to g; each slot of a frame is filled with a word w of its
class with probability p(w | g). The planted lean of a word is

    planted_delta_nats(w) = ln( p(w | she) / p(w | he) ).

Within a class, words come in pairs of equal frequency b with leans d and -d, p(w | she) =
b(1 + tanh(d/2)) and p(w | he) = b(1 - tanh(d/2)). Both sum to one over the class, and a word's
frequency doesn't depend on its lean. Fixed words of the frames have a lean of exactly 0.

**Expected corpus counts.** Windows do not cross documents, so the expected co-occurrences
satisfy c(w,she)/n(she) : c(w,he)/n(he) = p(w|she) : p(w|he). Hence PMI(w,she) - PMI(w,he) estimates
the planted lean with slope 1, and only sampling noise keeps their rank correlation under 1.

**Preferences of a perfect learner.** Content words are independent given g. For a sentence pair
that differs only in its pronouns,

    ln p(F) / p(M) = ln p(she)/p(he) + sum of planted_delta_nats over its content words,

wherever the pronoun is. If the pronoun comes before the word, the lean is in p(word | pronoun); if
it comes after the word, in p(pronoun | word). The prior is ln(1/1) = 0. The benchmark's frames have
one tested word among fixed words, so a perfect learner's log ratio is that word's planted lean.

**How to read a model.** Regress the model's log ratio on the planted lean. At slope 1 the model
copies the text's lean, at 0 it ignores the lean, above 1 it amplifies the lean. Between 0 and 1 it
has learned part of the lean; too little training also shrinks the slope, so a slope under 1 is not
evidence of fairness. The corpus never shows the benchmark's frames, so the slope also depends on
how the model generalises. An intercept is a preference for one pronoun, whatever the word. No such
preference is planted. An interval over words ignores the variance between training runs, which can
be larger.

**Other worlds.** ``swapped`` is the same text with she and he exchanged. The effects of frames,
tokenizer, seed and spelling stay the same; only the leans change sign. If the slope changes sign,
only the planted associations can be the cause.
"""
