"""Heat map of Kendall tau between the pairs of a word list (UnStereoEval, Figure 5)."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from plumbline.pipelines.reproduce.word_lists import Compared

#: Up to this many contrasts every cell holds its figure.
_ANNOTATED = 40
#: Fewer common words than this make a tau that says nothing; its cell stays grey.
_FEWEST_WORDS = 50


def matrix(compared: Compared) -> tuple[list[str], NDArray[np.float64]]:
    """Contrasts that share at least 50 words with another, in list order, and their tau-b.

    float64[n, n], symmetric, 1 on the diagonal; NaN where undefined or on fewer than 50 words.
    """
    enough = [row for row in compared.agreements if row.n_words >= _FEWEST_WORDS]
    held = {name for row in enough for name in (row.contrast_a, row.contrast_b)}
    contrasts = [r["contrast"] for r in compared.coverage if r["contrast"] in held]
    place = {name: k for k, name in enumerate(contrasts)}
    tau = np.full((len(contrasts), len(contrasts)), np.nan)
    np.fill_diagonal(tau, 1.0)
    for row in enough:
        i, j = place[row.contrast_a], place[row.contrast_b]
        tau[i, j] = tau[j, i] = row.tau_b
    return contrasts, tau


def draw(compared: Compared, path: Path) -> bool:
    """Write the heat map as PNG: the lower triangle, colour from -1 to 1, grey where undefined.

    Returns whether there was anything to draw.
    """
    from matplotlib.figure import Figure

    contrasts, tau = matrix(compared)
    n = len(contrasts)
    if n < 2:
        return False
    shown = np.where(np.tri(n, k=-1, dtype=bool), tau, np.nan)[1:, :-1]
    side = 3.4 + 0.3 * n
    figure = Figure(figsize=(side + 0.2, side), layout="constrained")
    axes = figure.add_subplot()
    image = axes.imshow(shown, cmap="RdBu", vmin=-1, vmax=1, aspect="equal")
    for i, j in np.argwhere(np.tri(n - 1, dtype=bool)).tolist():
        value = shown[i, j]
        if np.isnan(value):
            axes.fill((j - 0.5, j + 0.5, j + 0.5, j - 0.5), (i - 0.5,) * 2 + (i + 0.5,) * 2, "0.85")
        elif n <= _ANNOTATED:
            color = "w" if abs(value) > 0.6 else "k"
            label = f"{round(value, 2) + 0.0:.2f}".replace("0.", ".", 1).replace("-", "−")
            axes.text(j, i, label, ha="center", va="center", fontsize=6, color=color)
    axes.set_xticks(range(n - 1), contrasts[:-1], rotation=90, fontsize=8)
    axes.set_yticks(range(n - 1), contrasts[1:], fontsize=8)
    axes.spines[:].set_visible(False)
    axes.tick_params(length=0)
    axes.set_title(
        f"Do the pairs rank words alike?\nCorpus {compared.corpus}, list {compared.word_list}\n"
        f"grey: fewer than {_FEWEST_WORDS} common words",
        loc="left",
        fontsize=9,
    )
    # The empty upper triangle has room for the scale; a single cell has none.
    bar = figure.colorbar(image, cax=axes.inset_axes((0.93 if n > 2 else 1.3, 0.5, 0.02, 0.48)))
    bar.set_label("Kendall τ-b of delta", size=8)
    bar.ax.yaxis.set_ticks_position("left")
    bar.ax.yaxis.set_label_position("left")
    bar.ax.tick_params(labelsize=8)
    figure.savefig(path, dpi=150)
    return True
