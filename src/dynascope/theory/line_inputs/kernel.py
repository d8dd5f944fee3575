"""NTK of a two-layer linear network with layer-wise learning rates."""

from __future__ import annotations

from typing import Any, TypeAlias

import jax.numpy as jnp
from annotated_types import IsFinite
from jax import Array
from jax.typing import ArrayLike
from jaxtyping import Float, Real

from dynascope.compilation import AnyArray, float64_jit
from dynascope.theory.assumptions import ONE_OUTPUT
from dynascope.theory.domain import covers
from dynascope.theory.kernels import all_finite, nan_outside
from dynascope.theory.layer_rates import rate_shapes
from dynascope.theory.line_inputs.setting import LineNetwork
from dynascope.validation import require, require_broadcast

__all__ = ["tangent_kernel"]

_Samples: TypeAlias = IsFinite[Real[ArrayLike, "_ inputs"]]


@covers(
    network="two-layer linear, one output, any width, layer-wise rates",
    data="any",
    start="any",
    gives="the neural tangent kernel of given weights",
    reference="arXiv:2401.07085",
    assumes=(ONE_OUTPUT,),
)
def tangent_kernel(
    network: LineNetwork, inputs: _Samples, other_inputs: _Samples | None = None
) -> Float[AnyArray, "... samples others"]:
    """Compute the neural tangent kernel (NTK) of a two-layer linear network, including the learning rates.

    K(x, x') = γ² [η₂ Σ (x·wᵢ)(x'·wᵢ) + η₁ ‖u‖² x·x']

    Under gradient flow on p E(f − y)², the output obeys df(x)/dt = −2 p E_x'[K(x, x') (f(x') − y')].

    Args:
        network: Both layers (for example those of a `LineTrajectory` at all times), the multiplier γ and the learning
            rates η₁ and η₂.
        inputs: x, shape (n, d); the inputs need not lie on a line.
        other_inputs: x', shape (m, d); equal to `inputs` by default.

    Returns:
        Kernel of shape (..., n, m).

    Raises:
        InputError: If shapes do not match, a value is not finite, or γ or a rate is not positive. Inside `jit`, values
            outside this domain give NaN.

    References:
        Xu & Ziyin, arXiv:2401.07085, equation 18.

    Example:
        >>> import numpy as np
        >>> tangent_kernel(LineNetwork(np.diag([1.0, 2.0]), np.ones(2)), np.eye(2)).tolist()
        [[3.0, 0.0], [0.0, 6.0]]
    """
    w: Any = network.first
    u: Any = network.second
    x: Any = inputs
    other: Any = inputs if other_inputs is None else other_inputs
    shapes: list[tuple[int, ...]] = [getattr(each, "shape", ()) for each in (w, u)]
    require(
        len(shapes[0]) >= 2 and shapes[0][:-2] == shapes[1][:-1] and shapes[0][-1:] == shapes[1][-1:],
        f"network.first has shape {shapes[0]} and network.second has shape {shapes[1]}",
        argument="network.second",
        value=shapes[1],
        remedy="pass W of shape (..., d, h) and u of shape (..., h)",
    )
    for name, each in (("inputs", x), ("other_inputs", other)):
        require(
            each.shape[1] == w.shape[-2],
            f"{name} has shape {each.shape}, but the input dimension of network.first is {w.shape[-2]}",
            argument=name,
            value=each.shape,
            remedy="give one sample per row, with the input dimension of W",
        )
    multiplier = {"network.multiplier": getattr(network.multiplier, "shape", ())}
    rates = {f"network.{name}": shape for name, shape in rate_shapes(network.rates).items()}
    require_broadcast(**{"network.first": shapes[0][:-2]}, **multiplier, **rates)
    return _kernel(network, x, other)


@float64_jit
def _kernel(network: LineNetwork, inputs: Array, others: Array) -> Array:
    first, second = (jnp.asarray(each) for each in network[:2])
    multiplier, first_rate, second_rate = (
        jnp.asarray(each)[..., None, None] for each in (network.multiplier, *network.rates)
    )
    outer = second_rate * (inputs @ first) @ jnp.swapaxes(others @ first, -1, -2)
    inner = first_rate * jnp.sum(second**2, axis=-1)[..., None, None] * (inputs @ others.T)
    kernel = multiplier**2 * (outer + inner)
    return nan_outside(all_finite(kernel) & (multiplier > 0) & (first_rate > 0) & (second_rate > 0), kernel)
