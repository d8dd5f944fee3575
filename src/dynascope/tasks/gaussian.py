"""Gaussian regression: inputs with a given covariance, and linear targets."""

from __future__ import annotations

from typing import Annotated

import numpy as np
from annotated_types import Ge
from jaxtyping import Float
from numpy.typing import ArrayLike

from dynascope.tasks.task import Task
from dynascope.validation import checked, require, require_array, require_covariance
from dynascope.validation.bounded_scalars import NonNegativeFloat, Seed

__all__ = ["regression"]


@checked
def regression(
    *,
    samples: Annotated[int, Ge(2)],
    input_covariance: ArrayLike,
    target_map: ArrayLike,
    noise: NonNegativeFloat = 0.0,
    seed: Seed = 0,
    exact_moments: bool = False,
) -> Task:
    """Draw Gaussian inputs x ~ N(0, Σ) with targets y = x B + noise · ε, ε ~ N(0, I).

    With `exact_moments`, the draw is changed by the smallest possible symmetric linear transform so that the moments of
    the finite sample are exact: E[x xᵀ] = Σ and, with noise, E[ε εᵀ] = I and E[ε xᵀ] = 0. Then Σyx = Bᵀ Σ, and theories
    that depend only on these moments apply exactly. The moments are not centred, and the sample mean is not set to
    zero.

    Args:
        samples: Number of samples n.
        input_covariance: Σ, shape (d, d), or the d variances of independent inputs.
        target_map: B, shape (d, c), or (d,) for one target.
        noise: Standard deviation of the noise on each target.
        seed: Seed of the draw.
        exact_moments: Whether to make the sample moments exact; requires n ≥ d, or n ≥ d + c with noise.

    Returns:
        Task with inputs (n, d) and targets (n, c).

    Raises:
        InputError: If the covariance is not symmetric, positive semi-definite and non-zero, if shapes do not match, if
            the noise is negative, or if there are too few samples.

    Example:
        >>> task = regression(samples=8, input_covariance=[2.0, 1.0], target_map=[[3.0], [0.5]], exact_moments=True)
        >>> bool(np.allclose(task.input_moment, [[2, 0], [0, 1]])), bool(np.allclose(task.cross_moment, [[6, 0.5]]))
        (True, True)
    """
    root = _square_root(input_covariance)
    dimension = len(root)
    linear_map = require_array("target_map", target_map, (dimension,), (dimension, None)).reshape(dimension, -1)
    noise_dimension = linear_map.shape[1] if noise else 0
    fewest = max(2, dimension + noise_dimension) if exact_moments else 2
    require(
        samples >= fewest,
        f"samples is {samples}",
        argument="samples",
        value=samples,
        remedy=f"choose at least {fewest}" + (" for exact moments" if exact_moments else ""),
    )
    draw = np.random.default_rng(seed).normal(size=(samples, dimension + noise_dimension))
    if exact_moments:
        left, _, right = np.linalg.svd(draw, full_matrices=False)
        draw = np.sqrt(samples) * left @ right
    inputs, noises = draw[:, :dimension] @ root, draw[:, dimension:]
    targets = inputs @ linear_map + (noise * noises if noise else 0.0)
    exactly = "exactly" if exact_moments else "in expectation"
    return Task(
        inputs,
        targets,
        name="regression",
        description=(
            f"{samples} Gaussian samples, whose second moment is {exactly} that of the distribution.",
            "Targets are a linear map of the inputs"
            + (f" with noise of standard deviation {noise:g}." if noise else " without noise."),
        ),
    )


def _square_root(covariance: ArrayLike) -> Float[np.ndarray, "d d"]:
    variances, axes = np.linalg.eigh(require_covariance("input_covariance", covariance))
    return (axes * np.sqrt(np.maximum(variances, 0.0))) @ axes.T
