"""Encodings of a few irreducible representations that are learned at well-separated times."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np

from dynascope.groups import Group, Irrep, encoding_from_fourier, real_irreducible_representations
from dynascope.theory.groups.composition import composition_staircase
from dynascope.theory.groups.composition_utility import maximal_utility

__all__ = ["paced_encoding", "undisturbed_irreps"]

_SPACING = 2.5  # ratio of successive learning times that makes drops short compared with plateaus


def paced_encoding(
    group: Group, irreps: Sequence[Irrep], sequence_length: int, *, amplitudes: Sequence[float] = (), seed: int = 0
) -> np.ndarray:
    """The encoding of an element whose Fourier coefficients have equal singular values in each irrep.

    Args:
        group: The group.
        irreps: The irreps in the encoding, in the intended order of learning.
        sequence_length: Number k of composed elements.
        amplitudes: Amplitude of each irrep. By default, the first irrep is learned at t = log(1/scale), and each
            further irrep at 2.5 times the time of the previous one.
        seed: Seed of the encoding.
    """
    k = sequence_length
    if not amplitudes:
        # U* grows as the power k + 1 of the amplitude, and the time is 1/((k + 1) U*).
        ones = [encoding_from_fourier(group, {irrep.name: 1.0}) for irrep in irreps]
        utilities = [maximal_utility(group, x, irrep, k) for x, irrep in zip(ones, irreps, strict=True)]
        amplitudes = [((k + 1) * u * _SPACING**i) ** (-1 / (k + 1)) for i, u in enumerate(utilities)]
    named: dict[str | int, Any] = {each.name: size for each, size in zip(irreps, amplitudes, strict=True)}
    return encoding_from_fourier(group, named, seed=seed)


def undisturbed_irreps(
    group: Group, sequence_length: int, *, most: int = 3, scale: float = 1e-5, seed: int = 0
) -> list[Irrep]:
    """Choose irreps that theory does not predict to be slow when they are learned in this order.

    Candidates are the first irrep of each dimension, smallest dimension first, then the second of each, and so on.
    """
    _, *offered = real_irreducible_representations(group)
    found: dict[int, list[Irrep]] = {}
    for irrep in offered:
        found.setdefault(irrep.dimension, []).append(irrep)
    ordered = [irrep for each in itertools.zip_longest(*found.values()) for irrep in each if irrep]
    chosen = ordered[:1]
    for irrep in ordered[1:]:
        x = paced_encoding(group, [*chosen, irrep], sequence_length, seed=seed)
        if not any(composition_staircase(group, x, sequence_length, scale=scale).slow):
            chosen.append(irrep)
        if len(chosen) == most:
            break
    return chosen if len(chosen) > 1 else ordered[:2]
