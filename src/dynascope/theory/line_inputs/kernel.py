"""The neural tangent kernel of a two-layer linear network with learning rates by layer."""

from __future__ import annotations

import jax.numpy as jnp
from jax import Array
from jax.typing import ArrayLike
from jaxtyping import Float, Real

from dynascope.arguments import all_finite, in_units, nan_outside, real_arrays, require, require_broadcast
from dynascope.compilation import AnyArray, float64_jit
from dynascope.theory.assumptions import ONE_OUTPUT
from dynascope.theory.domain import covers

__all__ = ["tangent_kernel"]


@covers(
    network="two-layer linear, one output, any width, rates by layer",
    data="any",
    start="any",
    gives="the neural tangent kernel of given weights",
    reference="arXiv:2401.07085",
    assumes=(ONE_OUTPUT,),
)
@in_units(
    "first|second",
    "first_rate",
    "second_rate",
    "inputs",
    "multiplier",
    first="w",
    second="u",
    inputs="x",
    other_inputs="x",
    multiplier="g",
    first_rate="u^-2 r",
    second_rate="w^-2 r",
    gives="g^2 x^2 r",
)
def tangent_kernel(
    first: Real[ArrayLike, "... inputs width"],
    second: Real[ArrayLike, "... width"],
    inputs: Real[ArrayLike, "samples inputs"],
    other_inputs: Real[ArrayLike, "others inputs"] | None = None,
    *,
    multiplier: Real[ArrayLike, ...] = 1.0,
    first_rate: Real[ArrayLike, ...] = 1.0,
    second_rate: Real[ArrayLike, ...] = 1.0,
) -> Float[AnyArray, "... samples others"]:
    """The tangent kernel K(x, x') = γ² [η₂ Σ (x·wᵢ)(x'·wᵢ) + η₁ ‖u‖² x·x'], learning rates included.

    Under gradient flow on p E(f − y)² the output moves as df(x)/dt = −2 p E_x'[K(x, x') (f(x') − y')].

    Args:
        first: W, shape (..., d, h), such as `Trajectory.first` at all times.
        second: u, shape (..., h).
        inputs: x, shape (n, d); they need not lie on a line.
        other_inputs: x', shape (m, d); by default the same.
        multiplier: γ > 0; it and the rates broadcast with the kernel, shape (..., 1, 1).
        first_rate: η₁ > 0.
        second_rate: η₂ > 0.

    Returns:
        Kernel of shape (..., n, m). Values traced by JAX that are outside the domain give NaN.

    Raises:
        InputError: Shapes that do not fit, or values that are not finite or not positive.

    References:
        Xu & Ziyin, arXiv:2401.07085, equation 18.

    Example:
        >>> import numpy as np
        >>> tangent_kernel(np.diag([1.0, 2.0]), np.ones(2), np.eye(2)).tolist()
        [[3.0, 0.0], [0.0, 6.0]]
    """
    rates = {"multiplier": multiplier, "first_rate": first_rate, "second_rate": second_rate}
    arguments = {"first": first, "second": second, "inputs": inputs, "other_inputs": other_inputs, **rates}
    known = real_arrays(
        **{name: value for name, value in arguments.items() if name != "other_inputs" or value is not None},
        above=dict.fromkeys(rates, 0.0),
        broadcast=False,
    )
    w, u, x, *others = known[:-3]
    other = others[0] if others else x
    require(
        w.ndim >= 2 and u.ndim >= 1 and w.shape[:-2] == u.shape[:-1] and w.shape[-1] == u.shape[-1],
        f"first has shape {w.shape} and second {u.shape}",
        argument="second",
        value=u.shape,
        remedy="pass W of shape (..., d, h) and u of shape (..., h)",
    )
    for name, each in (("inputs", x), ("other_inputs", other)):
        require(
            each.ndim == 2 and each.shape[1] == w.shape[-2],
            f"{name} has shape {each.shape} for weights of {w.shape[-2]} inputs",
            argument=name,
            value=each.shape,
            remedy="pass samples in rows",
        )
    kernel = (*w.shape[:-2], len(x), len(other))
    require_broadcast(first=kernel, **{name: each.shape for name, each in zip(rates, known[-3:], strict=True)})
    return _kernel(w, u, x, other, *known[-3:])


@float64_jit
def _kernel(
    first: Array,
    second: Array,
    inputs: Array,
    others: Array,
    multiplier: Array,
    first_rate: Array,
    second_rate: Array,
) -> Array:
    outer = second_rate * (inputs @ first) @ jnp.swapaxes(others @ first, -1, -2)
    inner = first_rate * jnp.sum(second**2, axis=-1)[..., None, None] * (inputs @ others.T)
    kernel = multiplier**2 * (outer + inner)
    return nan_outside(all_finite(kernel) & (multiplier > 0) & (first_rate > 0) & (second_rate > 0), kernel)
