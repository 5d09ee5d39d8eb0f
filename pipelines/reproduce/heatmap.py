"""Heat map of Kendall tau between the pairs of a word list (UnStereoEval, Figure 5)."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

#: Up to this many contrasts every cell shows its figure.
_ANNOTATED = 40


def draw(contrasts: Sequence[str], tau: NDArray[np.float64], title: str, path: Path) -> None:
    """Write a heat map of tau as PNG: the lower triangle, colour from -1 to 1, NaN in grey.

    ``tau`` is a square matrix of the ``contrasts``, of which there are two or more.
    """
    from matplotlib.figure import Figure

    n = len(contrasts)
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
    axes.set_title(title, loc="left", fontsize=9)
    # The empty upper triangle has room for the scale; a single cell has none.
    bar = figure.colorbar(image, cax=axes.inset_axes((0.93 if n > 2 else 1.3, 0.5, 0.02, 0.48)))
    bar.set_label("Kendall τ-b of delta", size=8)
    bar.ax.yaxis.set_ticks_position("left")
    bar.ax.yaxis.set_label_position("left")
    bar.ax.tick_params(labelsize=8)
    figure.savefig(path, dpi=150)
