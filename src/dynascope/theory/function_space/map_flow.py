"""Integration of linear maps that obey a closed differential equation, with losses on samples."""

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

__all__ = ["Inputs", "MapPath", "Samples", "Targets", "integrate", "rank", "require_integrated"]

Inputs: TypeAlias = IsFinite[Real[ArrayLike, "samples inputs"]]
Targets: TypeAlias = IsFinite[Real[ArrayLike, "samples outputs"]]


class MapPath(NamedTuple):
    """Trajectory of a linear map.

    Attributes:
        coefficients: The map, shape (times, inputs, outputs).
        loss: L = ½ E‖xβ − y‖², shape (times,).
    """

    coefficients: Float[AnyArray, "times inputs outputs"]
    loss: Float[AnyArray, " times"]

    __repr__ = short_repr


class Samples(NamedTuple):
    """Inputs and targets, one sample per row; concrete values remain NumPy arrays.

    Attributes:
        inputs: X, shape (n, d).
        targets: Y, shape (n, c).
    """

    inputs: Float[Array, "n d"]
    targets: Float[Array, "n c"]

    @classmethod
    def checked(cls, inputs: Any, targets: Any, times: Any, shape: tuple[int, ...]) -> tuple[Samples, Any]:
        """Check that the samples match a map of the given shape, and that the times increase."""
        require_shape("inputs", inputs, (..., None, shape[0]))
        require_shape("targets", targets, (..., len(inputs), shape[1]))
        if not is_traced(times):
            require_increasing("times", np.asarray(times))
        return cls(inputs, targets), times

    @property
    def valid(self) -> Bool[Array, ""]:
        """Whether all values are finite."""
        return jnp.all(jnp.isfinite(self.inputs)) & jnp.all(jnp.isfinite(self.targets))

    def moments(self) -> tuple[Array, Array, Array]:
        """Return E[x xᵀ], E[x yᵀ] and E‖y‖²."""
        x, y = self
        return x.T @ x / len(x), x.T @ y / len(x), jnp.sum(y**2) / len(x)


def rank(matrix: Any, numbers: Any = jnp) -> Any:
    """Return the number of singular values above the rounding error, using `numpy` or `jax.numpy`."""
    if numbers is jnp:
        matrix = jax.lax.stop_gradient(matrix)
    sizes = numbers.linalg.svd(matrix, compute_uv=False)
    rounding = max(matrix.shape[-2:]) * float(jnp.finfo(matrix.dtype).eps)
    return numbers.sum(sizes > rounding * sizes[..., :1], axis=-1)


def integrate(
    velocity: Any, start: Array, times: Array, arguments: tuple[Array, ...], size: Array, valid: Array
) -> MapPath:
    """Integrate the map and evaluate its loss; NaN if the equation is too stiff or an argument is not valid.

    Args:
        velocity: Function of the time, the map and the arguments.
        start: The initial map.
        times: Increasing times.
        arguments: E[x xᵀ], E[x yᵀ], E‖y‖², and the remaining arguments of the velocity.
        size: Scale of the absolute tolerance; smaller entries of the map may have a larger relative error.
        valid: Whether all arguments are in the domain.
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


def require_integrated(path: MapPath, times: Any) -> MapPath:
    """Return the trajectory, or raise `InputError` if its integration failed.

    The first call in a process also compiles two small programs of diffrax, which all later calls reuse.
    """
    if not is_traced(path.loss):
        last = float(np.asarray(times)[-1])
        require(
            np.isfinite(path.loss).all(),
            f"times extends to {last:g}, but the equation is too stiff to be integrated that far",
            argument="times",
            value=last,
            remedy="choose earlier times",
        )
    return path
