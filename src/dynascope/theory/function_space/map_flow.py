"""Linear maps that follow an equation of their own, from samples."""

from __future__ import annotations

from typing import Any, NamedTuple, TypeAlias

import diffrax
import jax
import jax.numpy as jnp
import numpy as np
from annotated_types import IsFinite
from jax import Array
from jax.typing import ArrayLike
from jaxtyping import Bool, Float, Real

from dynascope.compilation import AnyArray
from dynascope.results.named_tuples import short_repr
from dynascope.theory.integration_steps import MOST_STEPS, step_control
from dynascope.theory.kernels import nan_outside
from dynascope.validation import is_traced, require, require_increasing, require_shape

__all__ = ["Inputs", "MapPath", "Samples", "Targets", "finished", "integrate", "rank"]

Inputs: TypeAlias = IsFinite[Real[ArrayLike, "samples inputs"]]
Targets: TypeAlias = IsFinite[Real[ArrayLike, "samples outputs"]]


class MapPath(NamedTuple):
    """A linear map over time.

    Attributes:
        coefficients: The map, shape (times, inputs, outputs).
        loss: L = ½ E‖xβ − y‖², shape (times,).
    """

    coefficients: Float[AnyArray, "times inputs outputs"]
    loss: Float[AnyArray, " times"]

    __repr__ = short_repr


class Samples(NamedTuple):
    """Inputs and targets, one sample a row; still in NumPy where they are known.

    Attributes:
        inputs: X, shape (n, d).
        targets: Y, shape (n, c).
    """

    inputs: Float[Array, "n d"]
    targets: Float[Array, "n c"]

    @classmethod
    def checked(cls, inputs: Any, targets: Any, times: Any, shape: tuple[int, ...]) -> tuple[Samples, Any]:
        """Samples for a map of a shape, and increasing times."""
        require_shape("inputs", inputs, (..., None, shape[0]))
        require_shape("targets", targets, (..., len(inputs), shape[1]))
        if not is_traced(times):
            require_increasing("times", np.asarray(times))
        return cls(inputs, targets), times

    @property
    def valid(self) -> Bool[Array, ""]:
        """Whether all is finite."""
        return jnp.all(jnp.isfinite(self.inputs)) & jnp.all(jnp.isfinite(self.targets))

    def moments(self) -> tuple[Array, Array, Array]:
        """E[x xᵀ], E[x yᵀ] and E‖y‖²."""
        x, y = self
        return x.T @ x / len(x), x.T @ y / len(x), jnp.sum(y**2) / len(x)


def rank(matrix: Any, numbers: Any = jnp) -> Any:
    """The number of singular values above rounding, in the arrays of jax.numpy or of NumPy."""
    if numbers is jnp:
        matrix = jax.lax.stop_gradient(matrix)
    sizes = numbers.linalg.svd(matrix, compute_uv=False)
    rounding = max(matrix.shape[-2:]) * float(jnp.finfo(matrix.dtype).eps)
    return numbers.sum(sizes > rounding * sizes[..., :1], axis=-1)


def integrate(
    velocity: Any, start: Array, times: Array, arguments: tuple[Array, ...], size: Array, valid: Array
) -> MapPath:
    """The solution at the times and its loss; NaN where the equation is too stiff, or what it needs is not valid.

    Args:
        velocity: Function of the time, the map and the arguments.
        start: The map at time zero.
        times: Increasing.
        arguments: E[x xᵀ], E[x yᵀ], E‖y‖², and what else the velocity needs.
        size: Entries of the map below it may have a larger relative error.
        valid: Whether all that was given is in the domain.
    """
    valid = valid & jnp.all(jnp.isfinite(times) & (times >= 0)) & jnp.all(jnp.diff(times) > 0)
    times = jnp.where(valid, times, 0)
    tolerance = 1e-10 if start.dtype == jnp.float64 else 1e-5

    solution = diffrax.diffeqsolve(
        diffrax.ODETerm(velocity),
        diffrax.Tsit5(),
        0.0,
        times[-1],
        None,
        start,
        arguments,
        saveat=diffrax.SaveAt(ts=times),
        stepsize_controller=step_control(tolerance, tolerance * size, times[-1]),
        max_steps=MOST_STEPS,
        throw=False,
    )
    assert solution.ys is not None
    path = solution.ys
    inner, cross, power, *_ = arguments
    explained = jnp.einsum("tic,tic->t", path, inner @ path - 2 * cross)
    reached = valid & (solution.result == diffrax.RESULTS.successful)
    return nan_outside(reached, MapPath(path, jnp.maximum(explained + power, 0) / 2), leading=True)


def finished(path: MapPath, times: Any) -> MapPath:
    """The path, or `InputError` if it was not reached.

    The integrator compiles two small programs of its own at its first use in a process, whatever the data.
    """
    if not is_traced(path.loss):
        last = float(np.asarray(times)[-1])
        require(
            np.isfinite(path.loss).all(),
            f"the equation is too stiff to be integrated to time {last:g}",
            argument="times",
            value=last,
            remedy="choose earlier times",
        )
    return path
