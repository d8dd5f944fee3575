"""The target directions that the neurons of a predicted staircase learn."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import xarray as xr

from dynascope.results import staircase_names as names

__all__ = ["with_overlaps"]


def with_overlaps(predicted: xr.Dataset, directions: np.ndarray, strengths: Sequence[float]) -> xr.Dataset:
    """Add the overlaps of the first neuron of each jump with the target directions to a predicted staircase.

    The neuron is assigned to the direction with the largest overlap among those that are not yet learned.

    Args:
        predicted: The staircase from `alternating_flow`, for a target Σ_r g_r φ(⟨w_r, x⟩).
        directions: w_r, orthonormal, shape (r, d).
        strengths: g_r, used to name the directions.
    """
    weights = predicted["direction"].to_numpy()[:, : directions.shape[1]]
    overlaps = weights @ directions.T / np.linalg.norm(weights, axis=1, keepdims=True)
    every, found = range(len(strengths)), []
    for sizes in np.abs(overlaps):
        # A neuron that also grew at an earlier jump still has most of its weight in the earlier direction.
        left = [index for index in every if index not in found] or every
        found.append(max(left, key=sizes.__getitem__))
    nearest, neurons = np.array(strengths)[found], predicted[names.LEARNED].to_numpy()
    learned = [f"direction of strength {strength:g} ({each})" for strength, each in zip(nearest, neurons, strict=True)]
    return predicted.assign(
        learned=(("jump",), np.array(learned, dtype=str)),
        index_strength=(("jump",), nearest),
        overlap=(("jump", "mode"), overlaps),
    ).assign_coords(mode=1 + np.arange(len(strengths)))
