"""What an intervention's interval over seeds covers, in studies designed as docs/cause-study.md.

A study draws one text of the closed world. Every training reads 6% of it, documents that its seed
chooses; a dose exchanges she and he in the same documents for all seeds, those of a smaller dose
among those of a larger. The learner counts: its lean is ``planted_lean`` of what it read, or that
lean cubed, which a quarter of the exchange nearly undoes, plus noise of the training in the size of
the study's placebo. The placebo changes nothing that the learner counts.
"""

from __future__ import annotations

import re
from functools import cache
from itertools import islice
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from plumbline.eval_workers.pairs.closed_world_corpus.corpus_writer import WorldOptions, documents
from plumbline.eval_workers.pairs.closed_world_corpus.truth import planted_words
from plumbline.pipelines.report.sections.intervention_effects import MARGIN

Floats = NDArray[np.float64]
ABOUT = (
    "How often the 95% interval of a response contains that of models trained on this text, of "
    "models trained on other texts drawn from the same documents, and on texts that differ as much "
    "as seeds do. A placebo without an effect: how often its interval excludes 0, and how often it "
    f"is shown to be small (less than {MARGIN:g} of the exchange's response); and how often so for "
    f"a large placebo, with {MARGIN:g} of that response."
)
DRAWS = 1_000
DOSES = np.array([0.0, 0.25, 0.5, 0.75, 1.0])
SEEDS = (2, 3, 5, 10)
#: Documents of a text, and those that a training reads: the 6% of docs/cause-study.md.
_N_TEXT, _N_READ = 2_000, 120
#: A training's own noise over the lean without a dose: that page's placebo, -0.069 to 0.063 over 5
#: seeds, is of differences of two trainings with the deviation 0.053; the lean is 0.130.
_NOISE = 0.053 / 2**0.5 / 0.130
#: More trainings, whose mean response is that of the text.
_N_TRUTH = 400
#: Documents of the world, from which texts are drawn.
_N_WORLD = 30_000
_FORMS = ({"she", "her", "hers", "herself"}, {"he", "him", "his", "himself"})


class World(NamedTuple):
    """Documents as a learner sees them: 1, -1 or 0 for whose each is, and sums of its words.

    ``sums`` is float64[document, 2 n]: for each of n classes of words the sum of the planted leans
    of the document's words of the class, and how many they are.
    """

    side: Floats
    sums: Floats


@cache
def world(seed: int) -> World:
    """Documents of a closed world."""
    words = planted_words(seed)
    classes = sorted({word.word_class for word in words})
    of = {w.word: (classes.index(w.word_class), w.delta_nats) for w in words}
    side, sums = np.zeros(_N_WORLD), np.zeros((_N_WORLD, 2 * len(classes)))
    for row, (text, _) in enumerate(islice(documents(WorldOptions(seed=seed), 0), _N_WORLD)):
        side[row], held = seen(text)
        for k, delta in (of[word] for word in held if word in of):
            sums[row, k] += delta
            sums[row, len(classes) + k] += 1
    return World(side, sums)


def seen(text: str) -> tuple[int, list[str]]:
    """Whose a document is, by its pronouns, 1 for she and -1 for he; and its words.

    >>> seen("He bought it for her. He left.")
    (-1, ['he', 'bought', 'it', 'for', 'her', 'he', 'left'])
    """
    words = re.findall(r"\w+", text.lower())
    she, he = (sum(word in forms for word in words) for forms in _FORMS)
    return int(np.sign(she - he)), words


def planted_lean(she: Floats, he: Floats) -> Floats:
    """How far counts lean as planted, from ``World.sums`` of documents of either side, [..., 2 n].

    With x(w) the planted lean of a word, and p(w | she) the share of its class's counts about *she*
    that are of w: the sum over words of x(w) (p(w | she) - p(w | he)), a mean over classes.
    Linear in these shares, so that the expected response of a learner that counts is proportional.

    >>> planted_lean(np.array([[3.0, 4.0]]), np.array([[-3.0, 6.0]]))
    array([1.25])
    """
    n = she.shape[-1] // 2
    mean: Floats = (she[..., :n] / she[..., n:] - he[..., :n] / he[..., n:]).mean(axis=-1)
    return mean


def leans(text: World, n_seeds: int, draw: np.random.Generator) -> Floats:
    """Leans without noise of trainings on a text, float64[seed, dose]."""
    changed_up_to = draw.random(len(text.side))  # a document is changed by the doses above this
    read = draw.random((n_seeds, len(text.side))).argpartition(_N_READ, axis=1)[:, :_N_READ]
    sign = np.where(changed_up_to[:, None] < DOSES, -1, 1) * text.side[:, None]
    sums = text.sums[read]
    she, he = (np.einsum("snk,snd->sdk", sums, (sign == s)[read].astype(float)) for s in (1, -1))
    return planted_lean(she, he)


def responses(of: Floats, doses: Floats = DOSES) -> Floats:
    """The least-squares slope of leans, float64[..., dose], on their doses."""
    x = doses - doses.mean()
    slopes: Floats = of @ x / (x @ x)
    return slopes


def half_width(figures: Floats, level: float = 0.95) -> float:
    """Half of Student's interval of a mean of figures, one per seed, as macro ``student_half``."""
    n = len(figures)
    return float(stats.t.ppf((1 + level) / 2, n - 1) * figures.std(ddof=1) / np.sqrt(n))


def share_bound(placebo: Floats, exchange: Floats) -> float:
    """``share_bound`` of view ``dose_response``, from a response per seed of either kind.

    The end farther from 0 of Fieller's 90% interval of the quotient of the means; infinite where
    the exchange's own 90% interval contains 0.

    >>> share_bound(np.array([0.0, 0.2, -0.1]), np.array([2.0, 2.2, 1.9])) < 0.2
    True
    """
    n, t = len(placebo), stats.t.ppf(0.95, len(placebo) - 1)
    (pp, pg), (_, gg) = np.cov(placebo, exchange) * t**2 / n
    p, g = placebo.mean(), exchange.mean()
    a, b, c = g**2 - gg, p * g - pg, p**2 - pp
    return float((abs(b) + np.sqrt(max(b**2 - a * c, 0))) / a) if a > 0 else np.inf


LEARNERS = {"proportional": 1, "cubed": 3}


def rows(draws: int, seed: int) -> list[dict[str, object]]:
    """A row per learner and number of seeds: shares of the studies, as ``ABOUT`` says."""
    found: dict[tuple[str, int], list[list[float]]] = {
        (learner, n): [] for learner in LEARNERS for n in SEEDS
    }
    draw, whole = np.random.default_rng(seed), world(seed)
    for _ in range(draws):
        of_text = draw.integers(0, _N_WORLD, _N_TEXT)
        plain = leans(World(whole.side[of_text], whole.sums[of_text]), _N_TRUTH + SEEDS[-1], draw)
        for learner, power in LEARNERS.items():
            lean = plain**power
            noise = _NOISE * lean[:, 0].mean() * draw.standard_normal((2, *lean.shape))
            exchange = responses(lean + noise[0])
            truth = float(responses(lean[SEEDS[-1] :]).mean())
            # A placebo's training of the whole dose, less the one without a dose of its seed.
            placebo = noise[1, :, -1] - noise[0, :, 0]
            other_text = exchange.std() * draw.standard_normal()
            for n in SEEDS:
                some = exchange[:n]
                error, half = some.mean() - truth, half_width(some)
                bounds = (share_bound(p[:n], some) for p in (placebo, placebo + MARGIN * truth))
                study = [truth, some.mean(), half, abs(error), abs(error + other_text)]
                study += [abs(placebo[:n].mean()) / half_width(placebo[:n]), *bounds]
                found[learner, n].append(study)
    return [_row(learner, n, np.array(of).T) for (learner, n), of in found.items()]


def _row(learner: str, n: int, of: Floats) -> dict[str, object]:
    truth, mean, half, error, error_of_other, placebo, bound, bound_of_large = of
    shares = {
        "this text": error <= half,
        "same documents": abs(mean - truth.mean()) <= half,
        "texts as unlike as seeds": error_of_other <= half,
        "placebo: excludes 0": placebo > 1,
        "placebo: small": bound < MARGIN,
        "large placebo: small": bound_of_large < MARGIN,
    }
    width = float((2 * half / abs(truth)).mean())
    named = {"learner": learner, "seeds": n, "width / response": width}
    return {**named, **{name: float(of.mean()) for name, of in shares.items()}}
