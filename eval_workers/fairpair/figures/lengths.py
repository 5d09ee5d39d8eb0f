"""Whether F depends on how long texts are: the same samples, cut after their first words.

Nothing is drawn or perturbed again: texts are cut after their perturbation, so that each length is
about the same prompts and samples, those that are valid whole. What changes from length to length
is the length alone.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import asdict

import numpy as np

from plumbline.eval_workers.fairpair.figures.metric import fairpair_f
from plumbline.eval_workers.fairpair.figures.significance import by_cluster, interval_over_prompts
from plumbline.eval_workers.fairpair.figures.texts import Group, Sampled, read_groups
from plumbline.eval_workers.fairpair.options import FigureOptions, texts_of
from plumbline.eval_workers.fairpair.phi import Floats, Phi, find
from plumbline.warehouse.storage.store import Store

Row = dict[str, object]

#: Words of a continuation that are kept; lengths that no continuation has are left out.
WORDS = (16, 32, 64, 128)
_WORD = re.compile(r"\S+")


def cut(text: str, n_words: int) -> str:
    """A text up to its ``n_words``-th word; 0: all of it. Words are what blanks part.

    >>> cut(" She cooks, and\\nreads.", 3), cut(" She cooks.", 3)
    (' She cooks, and', ' She cooks.')
    """
    ends = [found.end() for found in _WORD.finditer(text)]
    return text[: ends[n_words - 1]] if 0 < n_words < len(ends) else text


def score_lengths(
    store: Store,
    sampled: Sampled,
    phi_name: str,
    options: FigureOptions,
    run_id: str,
    words: Sequence[int] = WORDS,
) -> int:
    """Write ``fairpair_length`` of a set; returns how many. Earlier rows of the same texts are
    replaced.

    Measured are single samples, of the prompts that have two valid ones in each group. The row of
    whole texts has the figures of ``fairpair_set``. Raises as ``read_groups`` and ``find`` do.
    """
    phi, groups = find(phi_name), read_groups(store, sampled, options.as_published)
    shared = {
        **asdict(sampled),
        "phi": phi_name,
        "texts": texts_of(options.as_published),
        "options": json.dumps(asdict(options), sort_keys=True),
        "run_id": run_id,
    }
    rows: list[Row] = []
    for side in sorted({group.side for group in groups}):
        of_side = [group for group in groups if group.side == side]
        some = [group for group in of_side if min(len(group.pg), len(group.gp)) >= 2]
        counted = np.array([n for group in some for n in _counts(group)], np.int64)
        whole = _figures(phi, some, 0)
        for n_words in (*(n for n in words if n < counted.max(initial=0)), 0):
            figures = _figures(phi, some, n_words) if n_words else whole
            kept = np.minimum(counted, n_words) if n_words else counted
            rows.append(
                {
                    **shared,
                    "side": side,
                    "n_words": n_words,
                    "mean_words": float(kept.mean()) if kept.size else None,
                    "share_cut": float((kept < counted).mean()) if kept.size else None,
                    "n_prompts": len(some),
                    "n_left_out": len(of_side) - len(some),
                    **_row(figures, whole, [group.cluster for group in some], options),
                }
            )
    store.publish("fairpair_length", rows, unit=texts_of(options.as_published), run_id=run_id)
    return len(rows)


def _counts(group: Group) -> list[int]:
    """The words of each continuation."""
    return [len(_WORD.findall(text)) for text in group.pg + group.gp]


def _figures(phi: Phi, groups: Sequence[Group], n_words: int) -> Floats:
    """B, V_pg and V_gp of each prompt, prompts x 3."""
    found = []
    for group in groups:
        pg, gp = ([cut(text, n_words) for text in some] for some in (group.pg, group.gp))
        means = phi.means(phi.items(pg), phi.items(gp))
        found.append((means.between, means.within_left, means.within_right))
    return np.array(found, np.float64).reshape(-1, 3)


def _row(figures: Floats, whole: Floats, clusters: Sequence[str], options: FigureOptions) -> Row:
    """F of the means over prompts, its interval, and what it is more than that of whole texts."""
    if not len(figures):
        return {}

    def ends(beside: Floats | None = None) -> tuple[float | None, float | None]:
        rng = np.random.default_rng(options.seed)
        how = (options.level, options.n_resamples, rng)
        other = None if beside is None else by_cluster(beside, clusters)
        return interval_over_prompts(by_cluster(figures, clusters), *how, other)

    (b, v_pg, v_gp), of_whole = figures.mean(axis=0).tolist(), whole.mean(axis=0).tolist()
    f, f_whole = fairpair_f(b, v_pg, v_gp), fairpair_f(*of_whole)
    (low, high), (change_low, change_high) = ends(), ends(whole)
    return {
        **{"bias_b": b, "variability_pg": v_pg, "variability_gp": v_gp},
        **{"fairpair_f": f, "fairpair_f_low": low, "fairpair_f_high": high},
        "change": None if f is None or f_whole is None else f - f_whole,
        **{"change_low": change_low, "change_high": change_high},
    }
