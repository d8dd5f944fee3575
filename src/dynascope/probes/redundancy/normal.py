"""Hessians of the loss of each batch in the directions normal to an invariant set."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Annotated, Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from annotated_types import Interval
from jaxtyping import Float

from dynascope.compilation import filter_jit
from dynascope.probes.redundancy.hidden_units import UnitGroup, unit_weights
from dynascope.validation import require, require_finite_values, require_kind, require_room, shown
from dynascope.validation.bounded_scalars import NonNegativeFloat

__all__ = ["normal_hessians"]


def normal_hessians(
    loss: Callable[..., Any],
    parameters: Any,
    batches: Sequence[Any],
    group: UnitGroup,
    sets: Sequence[int | tuple[int, int]],
    *,
    kept: NonNegativeFloat = 1.0,
) -> Float[np.ndarray, "sets batches k k"]:
    """Compute the Hessian ∂²L_B/∂n² of each batch along n, the displacement from an invariant set.

    For the set on which unit i vanishes, n is the vector of all its weights; for the set on which units i and j are
    equal, n = (p_i − p_j)/√2. Near the set, a step of SGD multiplies n by I − η ∂²L_B/∂n². `theory.noise.step_matrices`
    and `random_product_exponent` use these Hessians to predict whether noise drives SGD into the set. In a ReLU
    network, the Hessian depends on the samples on which a unit is active. It is undefined on the set itself, where the
    slope of ReLU is discontinuous; to approximate its limit, choose a small positive `kept`.

    Cost: 3 k gradients of the loss for each batch and set, and memory for sets · batches · k² numbers.

    Args:
        loss: A JAX function of the parameters and the arrays of one batch, without weight decay. The loss is compiled
            once, so values that it reads from elsewhere are frozen.
        parameters: A module or any tree of arrays; leaves that are not floating-point arrays are kept unchanged.
        batches: The arrays that the loss takes, each with a leading batch axis, e.g. (batches, samples, d).
        group: The units.
        sets: For each set, the index of the unit that vanishes, or of the two units that are equal.
        kept: Factor ≥ 0 by which n is multiplied before the Hessian is computed: 1 for the current weights, a small
            number for a point close to the set.

    Returns:
        The Hessians, shape (sets, batches, k, k), where k is the number of weights of a unit.

    Raises:
        InputError: If a unit does not exist, arrays have different numbers of batches, the result does not fit into
            memory, or a Hessian is not finite.

    Example:
        >>> loss = lambda weights, x, y: jnp.mean((jnp.tanh(x @ weights["w"]) @ weights["a"] - y) ** 2) / 2
        >>> weights = {"w": np.array([[0.0, 1.0]]), "a": np.array([0.0, 1.0])}
        >>> x, y = np.array([[[1.0]], [[2.0]]]), np.array([[3.0], [1.0]])
        >>> found = normal_hessians(loss, weights, (x, y), UnitGroup(2, [("w", 1)], [("a", 0)]), sets=[0])
        >>> print(found.shape, found[0, 0].round(4))
        (1, 2, 2, 2) [[ 0.     -2.2384]
                      [-2.2384  0.    ]]
    """
    arrays, rest = eqx.partition(parameters, eqx.is_inexact_array)
    rows = unit_weights(arrays, group)
    widths = [part.shape[1] for part in rows]
    ways = (
        np.stack([_unit_coefficients(each, group.units) for each in sets]) if len(sets) else np.zeros((0, group.units))
    )
    for each in batches:
        require(
            isinstance(each, np.ndarray | jax.Array) and each.ndim > 0 and jnp.issubdtype(each.dtype, jnp.number),
            f"batches contains {shown(each)}",
            argument="batches",
            value=shown(each),
            remedy="give arrays of numbers with a leading batch axis",
        )
        require_finite_values("batches", each)
    counts = {len(each) for each in batches}
    require(
        len(ways) > 0,
        "sets is empty",
        argument="sets",
        value=0,
        remedy="give the index of a unit, or a pair of indices",
    )
    require(
        len(counts) == 1,
        f"the arrays in batches have different numbers of batches ({', '.join(map(str, sorted(counts)))})",
        argument="batches",
        value=sorted(counts),
        remedy="give arrays with the same number of batches",
    )
    k = sum(widths)
    require_room(len(ways) * counts.pop() * k**2, sets=len(ways))
    found = np.asarray(
        _hessians(loss, rest, group, tuple(widths), arrays, tuple(batches), ways, np.asarray(kept, float))
    )
    require(
        np.isfinite(found).all(),
        "some Hessians of the loss are not finite",
        argument="loss",
        value=int(np.sum(~np.isfinite(found))),
        remedy="give finite weights and batches, and a twice differentiable loss",
    )
    return found


def _unit_coefficients(each: Any, units: int) -> np.ndarray:
    """Return the coefficient of each unit in n."""
    members = list(each) if isinstance(each, list | tuple) else [each]
    for one in members:
        require_kind(Annotated[int, Interval(ge=0, le=units - 1)], sets=one)
    require(
        len(members) == 1 or (len(members) == 2 and members[0] != members[1]),
        f"sets contains {each}",
        argument="sets",
        value=str(each),
        remedy="give the index of a unit, or a pair of different indices",
    )
    way = np.zeros(units)
    way[members] = [1.0] if len(members) == 1 else [1 / math.sqrt(2), -1 / math.sqrt(2)]
    return way


@filter_jit
def _hessians(
    loss: Callable[..., Any],
    rest: Any,
    group: UnitGroup,
    widths: tuple[int, ...],
    arrays: Any,
    batches: tuple[Any, ...],
    ways: Any,
    kept: Any,
) -> Any:
    # The transpose of the linear map from arrays to unit rows writes rows back into arrays.
    place = jax.linear_transpose(lambda each: tuple(unit_weights(each, group)), arrays)
    rows = jnp.concatenate(unit_weights(arrays, group), axis=1)

    def of_set(way: Any) -> Any:
        way = way.astype(rows.dtype)

        def of_batch(batch: tuple[Any, ...]) -> Any:
            def along(n: Any) -> Any:
                change = n - way @ rows
                (moved,) = place(tuple(way[:, None] * part for part in jnp.split(change, [widths[0]])))
                return loss(eqx.combine(jax.tree.map(jnp.add, arrays, moved), rest), *batch)

            return jax.hessian(along)((kept * (way @ rows)).astype(rows.dtype))

        return jax.lax.map(of_batch, batches)

    return jax.lax.map(of_set, ways)
