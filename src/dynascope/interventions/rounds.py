"""Rounds of pruning: the number of weights that remain after each round, and how they are chosen."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from jaxtyping import Bool, Float

from dynascope.validation import require

__all__ = ["Masks", "kept_after_each_round", "largest_scores", "pruned_in_rounds", "require_reachable"]

Masks = list[np.ndarray]


def kept_after_each_round(weights: int, compression: float, rounds: int) -> list[int]:
    """Number of weights that remain after each round, on an exponential schedule.

        keep_k = round(N ρ^(−k/n)),   k = 1, …, n

    Example:
        >>> kept_after_each_round(1000, 100.0, 4)
        [316, 100, 32, 10]
    """
    return [round(weights * compression ** (-k / rounds)) for k in range(1, rounds + 1)]


def largest_scores(
    scores: Float[np.ndarray, " weights"], keep: int, mask: Bool[np.ndarray, " weights"]
) -> Bool[np.ndarray, " weights"]:
    """Mask of exactly `keep` weights with the largest scores among the weights in `mask`.

    If weights have equal scores, those that come first are kept.

    Example:
        >>> largest_scores(np.array([1.0, 3.0, 1.0, 9.0]), 2, np.array([True, True, True, False]))
        array([ True,  True, False, False])
    """
    if keep == 0:
        return np.zeros_like(mask)
    found = scores[mask]
    if keep >= found.size:
        return mask.copy()
    found.partition(found.size - keep)
    least = found[-keep]
    kept = mask & (scores > least)
    ties = np.flatnonzero(mask & (scores == least))
    kept[ties[: keep - np.count_nonzero(kept)]] = True
    return kept


def pruned_in_rounds(score: Callable[[Masks], Masks], shapes: Sequence[tuple[int, ...]], kept: Sequence[int]) -> Masks:
    """Prune to each number of weights in turn, globally over all layers, with new scores in every round.

    Args:
        score: Maps the masks of all layers to the scores of their weights; the largest are kept.
        shapes: Shape of each layer.
        kept: Number of weights after each round.
    """
    ends = np.cumsum([int(np.prod(shape)) for shape in shapes])

    def layers(flat: np.ndarray) -> Masks:
        return [part.reshape(shape) for part, shape in zip(np.split(flat, ends[:-1]), shapes, strict=True)]

    mask = np.ones(ends[-1], bool)
    for keep in kept:
        scores = np.concatenate([each.ravel() for each in score(layers(mask))])
        largest = scores.max()  # NaN if any score is NaN
        require(
            largest < np.inf,
            "the scores of some weights are not finite",
            argument="network",
            value=float(largest),
            remedy="give finite weights and data, and scale down weights that overflow",
        )
        mask = largest_scores(scores, keep, mask)
    return layers(mask)


def require_reachable(compression: float, sizes: Sequence[int], allow_collapse: bool) -> None:
    """Raise `InputError` if fewer weights than layers would remain, unless collapse is allowed."""
    keep, most = round(sum(sizes) / compression), sum(sizes) / len(sizes)
    require(
        allow_collapse or keep >= len(sizes),
        f"compression is {compression:.6g}, which leaves fewer weights ({keep}) than layers ({len(sizes)})",
        argument="compression",
        value=compression,
        remedy=f"choose at most {most:.6g}, or pass allow_collapse=True",
    )
