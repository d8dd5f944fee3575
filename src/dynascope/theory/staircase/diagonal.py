"""Loss staircases of diagonal linear networks, from the exact path of successive saddles."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from annotated_types import IsFinite
from jaxtyping import Float

from dynascope.results.staircase import Staircase
from dynascope.theory.assumptions import EQUAL_WEIGHTS, ONE_OUTPUT, SEPARATED_TIMES, SMALL_START
from dynascope.theory.domain import covers
from dynascope.theory.staircase.coefficient_growth import CoefficientGrowth, growth_of_products
from dynascope.theory.staircase.saddle_path import SaddlePath, successive_saddles
from dynascope.theory.staircase.saddle_times import jump_phrases, slow_reasons, times_at_scale
from dynascope.validation import require, require_shape
from dynascope.validation.bounded import OpenFraction

__all__ = ["diagonal_staircase", "names_of_inputs", "path_staircase"]

_THEORY = "successive saddles of diagonal linear networks"
_REFERENCE = (
    "S. Pesme, N. Flammarion, Saddle-to-saddle dynamics in diagonal linear networks (arXiv 2304.00488); "
    "Alternating Gradient Flows (arXiv 2506.06489)"
)


@covers(
    network="diagonal linear u ⊙ v",
    data="any",
    start="u = scale, v = 0",
    gives="times, levels and coefficients of all jumps",
    reference="arXiv:2304.00488",
    exact=False,
    assumes=(ONE_OUTPUT, SMALL_START, SEPARATED_TIMES, EQUAL_WEIGHTS),
)
def diagonal_staircase(
    inputs: IsFinite[Float[np.ndarray, "n d"]],
    targets: IsFinite[Float[np.ndarray, " n"]],
    *,
    scale: OpenFraction,
    feature_names: Sequence[str] | None = None,
) -> Staircase:
    """Predict the loss staircase (plateaus and jumps) of f(x) = (u ⊙ v)ᵀ x under gradient flow from u = scale·1, v = 0.

    Let β = u ⊙ v, let m = E[x (y − βᵀx)] be the multipliers, and let S be the integral of m in units of log(1/scale).
    Along the flow, β = (scale²/2) sinh(2 log(1/scale) S). In the limit of small scale, a coordinate is therefore zero
    while |Sᵢ| < 1, and may take any value with the sign of Sᵢ if |Sᵢ| = 1. The limit path alternates between two exact
    steps:

    1. S grows linearly at rate m until the next coordinate hits ±1;
    2. β jumps to argmin E(y − βᵀx)² with βᵢ ≥ 0 if Sᵢ = 1, βᵢ ≤ 0 if Sᵢ = −1, and βᵢ = 0 otherwise.

    A coordinate leaves the active set if its multiplier drives |Sᵢ| below 1, and may re-enter later. The path ends when
    all multipliers vanish: at the interpolator of minimum ℓ1 norm if an interpolator exists, otherwise at a
    least-squares solution.

    Args:
        inputs: x, shape (n, d).
        targets: y, shape (n,).
        scale: Initial value of u, between 0 and 1.
        feature_names: Names of the d inputs, used in descriptions; "x1", "x2", … if not given.

    Returns:
        The staircase. Its feature `coefficient` is β after each jump. The times at this scale add the growth time of
        each coordinate to the limit. After |Gᵢ| reaches log(1/scale), a coordinate takes a further time
        log(4|βᵢ|)/(2|mᵢ|) to reach half its value. Only then do the multipliers of the other coordinates change. A jump
        is marked slow, with the reason, if its time may have a larger error. One reason is that an adjacent plateau is
        too short to be reached at this scale. Another is that an inactive coordinate on an adjacent plateau is close to
        its boundary. A third is that the learned coordinate was close to its boundary on an earlier plateau.

    Raises:
        InputError: If an input or target is not finite, the shapes or names do not match, no input explains the
            targets, or the scale is not between 0 and 1.

    Assumptions: general position (the constrained least-squares problem has one solution).

    Source: arXiv 2304.00488, Algorithm 1; in the limit, Alternating Gradient Flows follow the same path, arXiv
        2506.06489.

    Example:
        >>> steps = diagonal_staircase(np.eye(2), np.array([4.0, -1.0]), scale=1e-6)
        >>> steps.accelerated_times, steps.levels
        (array([0.5, 2. ]), array([4.25, 0.25, 0.  ]))
        >>> steps.features["coefficient"][1]
        array([[ 4.,  0.],
               [ 4., -1.]])
    """
    names = names_of_inputs(inputs, targets, feature_names)
    path = successive_saddles(inputs, targets)
    return path_staircase(inputs, targets, path, growth_of_products(scale), names)


def names_of_inputs(inputs: np.ndarray, targets: np.ndarray, names: Sequence[str] | None) -> list[str]:
    """Validate targets and names; return one name per input."""
    samples, dimension = inputs.shape
    require_shape("targets", targets, (samples,))
    given = [f"x{i + 1}" for i in range(dimension)] if names is None else list(names)
    require(
        len(given) == dimension,
        f"feature_names has length {len(given)}, but the number of inputs is {dimension}",
        argument="feature_names",
        value=len(given),
        remedy="give one name per input",
    )
    return given


def path_staircase(
    x: np.ndarray, y: np.ndarray, path: SaddlePath, growth: CoefficientGrowth, names: list[str]
) -> Staircase:
    """Build the staircase of a path of saddles from the growth law of its coefficients."""
    return Staircase(
        accelerated_times=path.times,
        times=times_at_scale(x, y, path, growth),
        levels=path.levels,
        learned=jump_phrases(path, names),
        slow=slow_reasons(x, path, growth, names),
        features={"coefficient": (("jump", "feature"), path.maps[1:])},
        theory=_THEORY,
        reference=_REFERENCE,
        warnings=tuple(
            f"{', '.join(names[i] for i in tie)} are learned at the same time, so the data are not in general position."
            for tie in path.ties
        ),
    )
