"""Kernel regression with the final tangent kernel, a test of silent alignment."""

from __future__ import annotations

import numpy as np
from annotated_types import IsFinite
from jaxtyping import Float

from dynascope.theory.assumptions import ONE_OUTPUT
from dynascope.theory.domain import covers
from dynascope.theory.units import in_units
from dynascope.validation import require_shape

__all__ = ["kernel_regression_map"]

_Vector = IsFinite[Float[np.ndarray, " d"]]


@covers(
    network="any with a linear map, one output",
    data="any inputs, any targets",
    start="any",
    gives="the linear map that kernel regression with a given tangent kernel learns",
    reference="arXiv:2111.00034",
    assumes=(ONE_OUTPUT,),
)
@in_units(
    "inputs",
    "targets|initial_map",
    "preconditioner",
    inputs="x",
    targets="y",
    preconditioner="k",
    initial_map="y x^-1",
    gives="y x^-1",
)
def kernel_regression_map(
    inputs: IsFinite[Float[np.ndarray, "n d"]],
    targets: IsFinite[Float[np.ndarray, " n"]],
    preconditioner: IsFinite[Float[np.ndarray, "d d"]],
    *,
    initial_map: _Vector | None = None,
) -> Float[np.ndarray, " d"]:
    """Compute the linear map that gradient flow learns with the fixed tangent kernel X M Xᵀ.

    β = β₀ + M Xᵀ (X M Xᵀ)⁺ (y − X β₀)

    If the kernel of a network keeps its direction while the loss falls, M(t) = k(t) M, then the network learns this map
    for its final kernel. For a two-layer linear network with initial weights of scale α, the map differs from the
    learned one by O(α); with the initial kernel, it differs by O(1).

    Args:
        inputs: X, shape (n, d).
        targets: y, shape (n,).
        preconditioner: M, symmetric, for example from `function_space.preconditioner_matrix`, shape (d, d).
        initial_map: β₀, shape (d,). None stands for the zero map.

    Returns:
        β, shape (d,).

    Raises:
        InputError: If a value is not finite or shapes do not match.

    References:
        Atanasov, Bordelon, Pehlevan, arXiv:2111.00034, section 2.

    Example:
        >>> kernel_regression_map([[1.0, 2.0]], [5.0], np.diag([1.0, 0.5])).round(6).tolist()
        [1.666667, 1.666667]
    """
    require_shape("inputs", inputs, (..., None, None))
    require_shape("inputs", inputs, (None, None))
    d = inputs.shape[1]
    require_shape("targets", targets, (len(inputs),))
    require_shape("preconditioner", preconditioner, (d, d))
    start = np.zeros(d) if initial_map is None else initial_map
    require_shape("initial_map", start, (d,))
    learned = preconditioner @ inputs.T
    return start + learned @ np.linalg.pinv(inputs @ learned, hermitian=True) @ (targets - inputs @ start)
