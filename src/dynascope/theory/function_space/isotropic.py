"""Two-layer linear networks with isotropic layers, whose linear map obeys a closed differential equation."""

from __future__ import annotations

from typing import Annotated, Any, NamedTuple, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np
import scipy
from annotated_types import Ge, Gt, IsFinite
from jax import Array
from jax.typing import ArrayLike
from jaxtyping import Bool, Float, Real

from dynascope.compilation import AnyArray, float64_jit
from dynascope.theory.assumptions import BALANCED_LAYERS
from dynascope.theory.domain import covers
from dynascope.theory.function_space.conserved import kronecker_sum
from dynascope.theory.function_space.map_flow import (
    Inputs,
    MapPath,
    Samples,
    Targets,
    integrate,
    rank,
    require_integrated,
)
from dynascope.theory.kernels import nan_outside
from dynascope.theory.layer_rates import positive
from dynascope.theory.units import in_units
from dynascope.validation import is_traced, require, require_known, require_shape
from dynascope.validation.bounded import PositiveInt

__all__ = ["isotropic_flow", "isotropic_preconditioner", "trace_drift"]

_COVERED: dict[str, Any] = {
    "network": "two-layer linear",
    "start": "isotropic: Δ = δ I; for δ > 0 the width equals the number of outputs, for δ < 0 the number of inputs",
    "reference": "arXiv:2406.06158",
    "assumes": (BALANCED_LAYERS,),
}

_Number: TypeAlias = IsFinite[Real[ArrayLike, ""]]
_Rate: TypeAlias = Annotated[Real[ArrayLike, ""], Gt(0)]


class _IsotropicMap(NamedTuple):
    """A map with the imbalance, rate and width of its network; concrete values remain NumPy arrays.

    Attributes:
        coefficients: β, shape (..., d, c).
        imbalance: δ.
        rate: κ.
        width: h.
    """

    coefficients: Float[Array, "*members inputs outputs"]
    imbalance: Float[Array, ""]
    rate: Float[Array, ""]
    width: int

    @classmethod
    def checked(cls, beta: Any, delta: Any, width: int, kappa: Any) -> _IsotropicMap:
        """Check that the map obeys a closed differential equation."""
        require_known(width=width)
        require_shape("coefficients", beta, (..., None, None))
        if not is_traced(delta) and delta != 0:
            required = beta.shape[-1] if delta > 0 else beta.shape[-2]
            require(
                width == required,
                f"width is {width}, but for an imbalance of {float(delta):g}, the flow closes in function space only "
                f"if width is {required}",
                argument="width",
                value=width,
                remedy="use balanced.product for whitened inputs, or integrate the weights",
            )
        elif not is_traced(delta) and not is_traced(beta):
            require(
                rank(np.asarray(beta), np).max(initial=0) <= width,
                f"the rank of coefficients is greater than the width {width}",
                argument="coefficients",
                value=width,
                remedy="choose coefficients of lower rank or a larger width",
            )
        values: tuple[Any, ...] = (beta, delta, kappa, width)
        return cls(*values)

    @property
    def active(self) -> Array:
        """The number of singular values of β that may grow.

        In a balanced network, zero singular values stay zero; rounding errors must not make them grow.
        """
        return jnp.where(self.imbalance == 0, rank(self.coefficients), min(self.coefficients.shape[-2:]))

    @property
    def valid(self) -> Bool[Array, "*members"]:
        """Whether all values are finite, the rate is positive, and the map obeys a closed equation."""
        inputs, outputs = self.coefficients.shape[-2:]
        fits = jnp.where(self.imbalance > 0, self.width == outputs, self.width == inputs)
        fits = jnp.where(self.imbalance == 0, self.active <= self.width, fits)
        finite = jnp.all(jnp.isfinite(self.coefficients), axis=(-2, -1)) & jnp.isfinite(self.imbalance)
        return finite & positive(self.rate) & fits

    def in_one_precision(self) -> tuple[Array, Array, Array, Array]:
        """Return β, δ, κ and the number of growing singular values, in the precision of β."""
        beta = self.coefficients
        return beta, self.imbalance.astype(beta.dtype), self.rate.astype(beta.dtype), self.active


@covers(data="any", gives="the preconditioner of the flow in function space, from the map alone", **_COVERED)
def isotropic_preconditioner(
    coefficients: IsFinite[Real[ArrayLike, "... inputs outputs"]],
    imbalance: _Number,
    width: PositiveInt,
    *,
    rate: _Rate = 1.0,
) -> Float[AnyArray, "*members dc dc"]:
    """Compute the preconditioner M(β) of the function-space flow of a network with Δ = η₁ W₂W₂ᵀ − η₂ W₁ᵀW₁ = δ I.

    vec(β)' = −M vec(∂L/∂β), M(β) = √(κ² βᵀβ + δ²/4) ⊗ I + I ⊗ √(κ² ββᵀ + δ²/4), β = W₁ W₂

    The two terms of `preconditioner_matrix` equal these square roots plus and minus δ/2, so δ/2 cancels in their sum.
    Networks with a large first layer therefore have the same function-space dynamics as networks with a large second
    layer. The roots are computed from the singular values of β to avoid a loss of digits. The function can be compiled
    and differentiated, even if singular values are equal.

    Args:
        coefficients: β, shape (..., d, c).
        imbalance: δ, a number.
        width: h ≥ 1, the number of hidden neurons.
        rate: κ = √(η₁ η₂) > 0, a number.

    Returns:
        M, shape (..., d c, d c); row o·d + i belongs to β[i, o].

    Raises:
        InputError: If the map does not obey a closed differential equation (δ > 0 and h ≠ c, or δ < 0 and h ≠ d), the
            rank of β exceeds h, or a value is not finite. Inside `jit`, values outside this domain give NaN.

    References:
        Kunin et al., arXiv:2406.06158, section 4; the domain is derived here.

    Example:
        >>> isotropic_preconditioner([[3.0], [0.0]], 8.0, 1).tolist()
        [[10.0, 0.0], [0.0, 9.0]]
    """
    return _preconditioner(_IsotropicMap.checked(coefficients, imbalance, width, rate))


@covers(data="any inputs and targets", gives="the linear map of the network and the loss over time", **_COVERED)
@in_units(
    "inputs",
    "targets|coefficients",
    "rate",
    times="t",
    inputs="x",
    targets="y",
    coefficients="y x^-1",
    imbalance="x^-2 t^-1",
    rate="x^-1 y^-1 t^-1",
    gives={"coefficients": "y x^-1", "loss": "y^2"},
)
def isotropic_flow(
    times: Annotated[Real[ArrayLike, " times"], Ge(0)],
    inputs: Inputs,
    targets: Targets,
    coefficients: IsFinite[Real[ArrayLike, "inputs outputs"]],
    imbalance: _Number,
    width: PositiveInt,
    *,
    rate: _Rate = 1.0,
) -> MapPath:
    """Integrate the map β of an isotropic two-layer linear network under gradient flow.

    β' = −(G √(κ² βᵀβ + δ²/4) + √(κ² ββᵀ + δ²/4) G), G = E[x xᵀ] β − E[x yᵀ]

    The relative tolerance of the integration is 1e-10 (1e-5 in single precision). For whitened inputs,
    `balanced.product` computes the solution in closed form and supports more widths. The function can be compiled and
    differentiated, even if singular values are equal.

    Args:
        times: Gradient-flow times t ≥ 0, increasing, shape (times,).
        inputs: X, shape (n, d).
        targets: Y, shape (n, c).
        coefficients: β(0) = W₁ W₂, shape (d, c). It must not be zero if δ = 0, because zero is then a fixed point.
        imbalance: δ, a number, with Δ = η₁ W₂W₂ᵀ − η₂ W₁ᵀW₁ = δ I.
        width: h ≥ 1, the number of hidden neurons.
        rate: κ = √(η₁ η₂) > 0, a number.

    Returns:
        The map and the loss at the given times.

    Raises:
        InputError: As for `isotropic_preconditioner`, or if shapes do not match, the times do not increase, β(0) and δ
            are zero, or the equation is too stiff.

    References:
        Kunin et al., arXiv:2406.06158, section 4.

    Example:
        >>> with jax.enable_x64(True):
        ...     path = isotropic_flow(np.array([0.0, 1.0, 20.0]), np.ones((1, 1)), np.ones((1, 1)), [[0.5]], 2.0, 1)
        ...     print(path.coefficients.ravel().round(4))
        [0.5    0.9624 1.    ]
    """
    start = _IsotropicMap.checked(coefficients, imbalance, width, rate)
    samples, t = Samples.checked(inputs, targets, times, start.coefficients.shape)
    moves = [start.coefficients, start.imbalance]
    require(
        any(map(is_traced, moves)) or any(np.any(np.asarray(each) != 0) for each in moves),
        "coefficients and imbalance are both zero, which is a fixed point of the flow",
        argument="coefficients",
        value=0.0,
        remedy="choose nonzero coefficients or a nonzero imbalance",
    )
    return require_integrated(_flow(start, samples, t), t)


@float64_jit
def _preconditioner(start: _IsotropicMap) -> Array:
    return nan_outside(start.valid, kronecker_sum(*_roots(*start.in_one_precision())), leading=True)


@float64_jit
def _flow(start: _IsotropicMap, samples: Samples, times: Array) -> MapPath:
    beta, delta, kappa, active = start.in_one_precision()
    moments = samples.moments()
    # A map smaller than |δ|/2κ learns as in linear regression, so that errors relative to |δ|/2κ are sufficient.
    known, kind, rate, cross = map(jax.lax.stop_gradient, (beta, delta, kappa, moments[1]))
    reach = jnp.minimum(jnp.abs(kind) / (2 * rate), jnp.sqrt(jnp.mean(cross**2)))
    size = jnp.maximum(jnp.sqrt(jnp.mean(known**2)), reach)
    valid = start.valid & samples.valid & (jnp.any(beta != 0) | (delta != 0))
    return integrate(_velocity, beta, times, (*moments, delta, kappa, active), size, valid)


def _velocity(t: Any, beta: Array, arguments: tuple[Array, ...]) -> Array:
    inner, cross, _, delta, kappa, active = arguments
    gradient = inner @ beta - cross
    outer_root, inner_root = _roots(beta, delta, kappa, active)
    return -(gradient @ outer_root + inner_root @ gradient)


@jax.custom_jvp
def _roots(beta: Array, delta: Array, kappa: Array, active: Array) -> tuple[Array, Array]:
    """Return √(κ² βᵀβ + δ²/4) and √(κ² ββᵀ + δ²/4)."""
    left, sizes, right = jnp.linalg.svd(beta, full_matrices=True)
    sizes = jnp.where(jnp.arange(sizes.shape[-1]) < active[..., None], sizes, 0)
    rest = jnp.abs(delta) / 2

    def root(vectors: Array) -> Array:
        values = jnp.full(vectors.shape[:-1], rest, beta.dtype)
        values = values.at[..., : sizes.shape[-1]].set(jnp.hypot(kappa * sizes, rest))
        return (vectors * values[..., None, :]) @ vectors.mT

    return root(right.mT), root(left)


@_roots.defjvp
def _(primals: tuple[Array, ...], tangents: tuple[Any, ...]) -> tuple[Any, Any]:
    # Singular vectors have no derivative if singular values are equal. Instead, R² = S implies R dR + dR R = dS.
    (beta, delta, kappa, _), (beta_dot, delta_dot, kappa_dot, _) = primals, tangents
    roots = _roots(*primals)

    def change(root: Array, matrix: Array, moved: Array) -> Array:
        product = moved.mT @ matrix
        square = 2 * kappa * kappa_dot * (matrix.mT @ matrix) + kappa**2 * (product + product.mT)
        return _solve_lyapunov(root, square + delta * delta_dot / 2 * jnp.eye(root.shape[-1], dtype=root.dtype))

    return roots, (change(roots[0], beta, beta_dot), change(roots[1], beta.mT, beta_dot.mT))


@jax.custom_jvp
def _solve_lyapunov(root: Array, square: Array) -> Array:
    """Solve R X + X R = S for symmetric R ≥ 0; X is zero in the null space of R."""
    values, vectors = jnp.linalg.eigh(root)
    total = values[..., :, None] + values[..., None, :]
    some = total > root.shape[-1] * jnp.finfo(root.dtype).eps * values[..., -1:, None]
    parts = vectors.mT @ square @ vectors / jnp.where(some, total, 1)
    return vectors @ jnp.where(some, parts, 0) @ vectors.mT


@_solve_lyapunov.defjvp
def _(primals: tuple[Array, Array], tangents: tuple[Array, Array]) -> tuple[Array, Array]:
    (root, _), (root_dot, square_dot) = primals, tangents
    found = _solve_lyapunov(*primals)
    return found, _solve_lyapunov(root, square_dot - root_dot @ found - found @ root_dot)


def trace_drift(
    times: np.ndarray, coefficients: np.ndarray, gradients: np.ndarray, imbalance: float, *, rate: float = 1.0
) -> float:
    """Compute the drift of tr Δ under gradient descent along a trajectory of the map, divided by the step size.

    κ² ∫ tr(Gᵀ η₂W₁W₁ᵀ G) − tr(G η₁W₂ᵀW₂ Gᵀ) dt

    For isotropic layers, η₂W₁W₁ᵀ = √(κ²ββᵀ + δ²/4) − δ/2 and η₁W₂ᵀW₂ = √(κ²βᵀβ + δ²/4) + δ/2.

    Args:
        times: Closely spaced times, shape (times,).
        coefficients: β, shape (times, d, c).
        gradients: G = ∂L/∂β, shape (times, d, c).
        imbalance: δ.
        rate: κ = √(η₁η₂).
    """
    left, sizes, right = np.linalg.svd(coefficients, full_matrices=False)
    half = abs(imbalance) / 2
    excess = np.hypot(rate * sizes, half) - half
    inner = np.sum(excess[..., None] * (np.swapaxes(left, -1, -2) @ gradients) ** 2, axis=(-2, -1))
    outer = np.sum(excess[..., None, :] * (gradients @ np.swapaxes(right, -1, -2)) ** 2, axis=(-2, -1))
    return float(
        scipy.integrate.simpson(rate**2 * (inner - outer - imbalance * np.sum(gradients**2, axis=(-2, -1))), x=times)
    )
