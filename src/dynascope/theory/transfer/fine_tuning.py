"""Transfer with both layers trained, after new outputs with zero weights are added to the old outputs."""

from __future__ import annotations

from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from annotated_types import IsFinite
from jax import Array
from jax.typing import ArrayLike
from jaxtyping import Float, Real

from dynascope.compilation import AnyArray, float64_jit
from dynascope.results.named_tuples import short_repr
from dynascope.theory.assumptions import BALANCED_LAYERS, ENOUGH_SAMPLES, WHITE_INPUTS
from dynascope.theory.balanced.balance import LAYER_UNITS, FirstLayer, MapTimes
from dynascope.theory.balanced.solution import layers_and_map, solve_gram
from dynascope.theory.domain import covers
from dynascope.theory.layer_rates import LayerRates
from dynascope.theory.units import in_units
from dynascope.validation import is_traced, require, require_shape
from dynascope.validation.bounded import PositiveInt

__all__ = ["JointTransfer", "joint_transfer"]


class JointTransfer(NamedTuple):
    """Product and errors while the old and the new outputs are trained together.

    Attributes:
        product: W₁W₂, with the new outputs in the last columns, shape (..., times, d, c + k).
        old_error: ½‖W₁W₂ − A‖² on the old outputs, shape (..., times).
        new_error: ½‖W₁W₂ − C‖² on the new outputs, shape (..., times).
    """

    product: Float[AnyArray, "*members times inputs outputs"]
    old_error: Float[AnyArray, "*members times"]
    new_error: Float[AnyArray, "*members times"]

    __repr__ = short_repr


@covers(
    network="two-layer linear, any widths",
    data="whitened inputs, any old and new targets",
    start="λ-balanced, for example converged on the old targets; new outputs at zero",
    gives="the errors on the old and the new targets over time",
    reference="arXiv:2409.14623",
    assumes=(ENOUGH_SAMPLES, WHITE_INPUTS, BALANCED_LAYERS),
)
@in_units(
    "rates.first",
    "rates.second",
    "old_map|new_map|first|second",
    **LAYER_UNITS,
    old_map="w a",
    new_map="w a",
    times="t",
    gives=("w a", "w^2 a^2", "w^2 a^2"),
)
def joint_transfer(
    first: FirstLayer,
    second: IsFinite[Real[ArrayLike, "... width old"]],
    old_map: IsFinite[Real[ArrayLike, "inputs old"]],
    new_map: IsFinite[Real[ArrayLike, "inputs new"]],
    times: MapTimes,
    *,
    rates: LayerRates = LayerRates(),
    approximate: bool = False,
    steps: PositiveInt | None = None,
) -> JointTransfer:
    """Compute the errors of a λ-balanced network trained on old and new targets, with new outputs initialised at zero.

    New outputs with zero weights do not change W₂ W₂ᵀ. The enlarged network is therefore λ-balanced with the same λ,
    and follows the exact solution of `balanced.product` for the enlarged map (A, C). The errors are ½‖W₁W₂ − A‖² over
    the old outputs and ½‖W₁W₂ − C‖² over the new outputs.

    Args:
        first: W₁, shape (..., d, h), with f(x) = x W₁ W₂.
        second: W₂ of the old outputs, shape (..., h, c), with W₂ W₂ᵀ − W₁ᵀ W₁ = λ I.
        old_map: A = E[x yᵀ] of the old targets, shape (d, c); inputs have E[x xᵀ] = I.
        new_map: C of the new targets, shape (d, k).
        times: Gradient-flow times t ≥ 0 since the new outputs were added, shape (times,).
        rates: η₁ and η₂, each a number or one value per member.
        approximate: As in `balanced.gram`.
        steps: As in `balanced.gram`.

    Raises:
        InputError: If shapes do not match, or as for `balanced.product`. Inside `jit`, values outside this domain give
            NaN.

    References:
        The exact solution is by Dominé et al., arXiv:2409.14623; its application to new outputs is ours.

    Example:
        >>> import jax, numpy as np
        >>> from dynascope.theory.transfer import converged_layers
        >>> old, new = np.diag([2.0, 1.0]), np.ones((2, 1))
        >>> with jax.enable_x64(True):
        ...     solution = joint_transfer(*converged_layers(old, balance=0.5, width=2), old, new, np.array([0.0, 20.0]))
        ...     print(abs(solution.new_error).round(6))
        [1. 0.]
    """
    given: dict[str, Any] = {"second": second, "old_map": old_map, "new_map": new_map}
    for name, each in given.items():
        require_shape(name, each, (..., None, None))
    readout, old, new = given.values()
    require(
        len(old) == len(new),
        f"new_map has shape {new.shape}, but old_map has shape {old.shape}",
        argument="new_map",
        value=new.shape,
        remedy="give both maps one row per input",
    )
    require(
        readout.shape[-1] == old.shape[1],
        f"second has shape {readout.shape}, but old_map has shape {old.shape}",
        argument="second",
        value=readout.shape,
        remedy="give second and old_map one column per old output",
    )
    enlarged = _joined(readout, np.zeros((*readout.shape[:-1], new.shape[1]), readout.dtype))
    target_map = _joined(old, new)
    network, target_map = layers_and_map(first, enlarged, target_map, rates)
    path = solve_gram(network, target_map, times, approximate, steps).product
    return JointTransfer(path, *_errors(path, target_map, old))


def _joined(left: Any, right: Any) -> Any:
    """Concatenate two arrays along the last axis, in NumPy unless one of them is traced."""
    numbers = jnp if is_traced(left) or is_traced(right) else np
    return numbers.concatenate([left, right], axis=-1)


@float64_jit
def _errors(path: Array, target_map: Array, old: Array) -> tuple[Array, Array]:
    errors = jnp.sum((path - target_map) ** 2, axis=-2) / 2
    outputs = old.shape[1]
    return jnp.sum(errors[..., :outputs], axis=-1), jnp.sum(errors[..., outputs:], axis=-1)
