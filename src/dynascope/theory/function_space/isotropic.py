"""Isotropic starts: two-layer networks whose function tells its own motion."""

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
    finished,
    integrate,
    rank,
)
from dynascope.theory.kernels import nan_outside
from dynascope.theory.layer_rates import positive
from dynascope.theory.units import in_units
from dynascope.validation import is_traced, require, require_known, require_shape
from dynascope.validation.bounded import PositiveInt

__all__ = ["isotropic_flow", "isotropic_preconditioner", "trace_drift"]

_COVERED: dict[str, Any] = {
    "network": "two-layer linear",
    "start": "isotropic: Δ = δ I with δ = 0, or δ > 0 and as many neurons as outputs, or δ < 0 and as many as inputs",
    "reference": "arXiv:2406.06158",
    "assumes": (BALANCED_LAYERS,),
}

_Number: TypeAlias = IsFinite[Real[ArrayLike, ""]]
_Rate: TypeAlias = Annotated[Real[ArrayLike, ""], Gt(0)]


class _IsotropicMap(NamedTuple):
    """A map and the start behind it; still in NumPy where they are known.

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
        """A map whose function tells its own motion."""
        require_known(width=width)
        require_shape("coefficients", beta, (..., None, None))
        if not is_traced(delta) and delta != 0:
            wanted = beta.shape[-1] if delta > 0 else beta.shape[-2]
            require(
                width == wanted,
                f"with an imbalance of {float(delta):g} the function tells its own motion for {wanted} hidden neurons "
                "only",
                argument="width",
                value=width,
                remedy="use balanced.product where inputs are whitened, or integrate the weights",
            )
        elif not is_traced(delta) and not is_traced(beta):
            require(
                rank(np.asarray(beta), np).max(initial=0) <= width,
                f"the map has a rank above {width}, the number of hidden neurons",
                argument="coefficients",
                value=width,
                remedy="give a map that layers of that width can have",
            )
        values: tuple[Any, ...] = (beta, delta, kappa, width)
        return cls(*values)

    @property
    def kept(self) -> Array:
        """How many singular values of β there are: rounding must not let others grow in balance."""
        return jnp.where(self.imbalance == 0, rank(self.coefficients), min(self.coefficients.shape[-2:]))

    @property
    def valid(self) -> Bool[Array, "*members"]:
        """Whether all is finite, the rate positive, and the width one at which the function tells its own motion."""
        inputs, outputs = self.coefficients.shape[-2:]
        fits = jnp.where(self.imbalance > 0, self.width == outputs, self.width == inputs)
        fits = jnp.where(self.imbalance == 0, self.kept <= self.width, fits)
        finite = jnp.all(jnp.isfinite(self.coefficients), axis=(-2, -1)) & jnp.isfinite(self.imbalance)
        return finite & positive(self.rate) & fits

    def in_one_precision(self) -> tuple[Array, Array, Array, Array]:
        """β, δ, κ and the number of singular values kept, in the precision of β."""
        beta = self.coefficients
        return beta, self.imbalance.astype(beta.dtype), self.rate.astype(beta.dtype), self.kept


@covers(data="any", gives="the matrix of the flow in function space, from the map alone", **_COVERED)
def isotropic_preconditioner(
    coefficients: IsFinite[Real[ArrayLike, "... inputs outputs"]],
    imbalance: _Number,
    width: PositiveInt,
    *,
    rate: _Rate = 1.0,
) -> Float[AnyArray, "*members dc dc"]:
    """M(β) = √(κ² βᵀβ + δ²/4) ⊗ I + I ⊗ √(κ² ββᵀ + δ²/4) of the flow vec(β)' = −M vec(∂L/∂β), β = W₁ W₂.

    For Δ = η₁ W₂W₂ᵀ − η₂ W₁ᵀW₁ = δ I the two parts of `preconditioner_matrix` are these roots ± δ/2, and the δ/2
    cancel: networks with a large first or a large second layer have the same dynamics in function space. The roots
    are taken through the singular values of β, so that no digits are lost. It can be compiled and differentiated,
    also where singular values are equal.

    Args:
        coefficients: β, shape (..., d, c).
        imbalance: δ, a number.
        width: h ≥ 1, the number of hidden neurons.
        rate: κ = √(η₁ η₂) > 0, a number.

    Returns:
        M, shape (..., d c, d c); row o·d + i belongs to β[i, o].

    Raises:
        InputError: A δ and a width for which the function does not tell M: δ > 0 and h ≠ c, or δ < 0 and h ≠ d; or
            a map of a rank above h; or values that are not finite. Where JAX traces them, such values give NaN.

    References:
        Kunin et al., arXiv:2406.06158, section 4; the domain is derived anew.

    Example:
        >>> isotropic_preconditioner([[3.0], [0.0]], 8.0, 1).tolist()
        [[10.0, 0.0], [0.0, 9.0]]
    """
    return _preconditioner(_IsotropicMap.checked(coefficients, imbalance, width, rate))


@covers(data="any inputs and targets", gives="the function over time", **_COVERED)
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
    """Follow β' = −(G √(κ² βᵀβ + δ²/4) + √(κ² ββᵀ + δ²/4) G), G = E[x xᵀ] β − E[x yᵀ], integrated to 1e-10.

    For whitened inputs `balanced.product` is a closed form of the same, for more widths. It can be compiled and
    differentiated, also where singular values are equal.

    Args:
        times: Gradient-flow times t ≥ 0, increasing, shape (times,).
        inputs: X, shape (n, d).
        targets: Y, shape (n, c).
        coefficients: β(0) = W₁ W₂, shape (d, c); not zero if δ = 0, which is a resting point.
        imbalance: δ, a number, of Δ = η₁ W₂W₂ᵀ − η₂ W₁ᵀW₁ = δ I.
        width: h ≥ 1, the number of hidden neurons.
        rate: κ = √(η₁ η₂) > 0, a number.

    Returns:
        `MapPath`, over the times.

    Raises:
        InputError: As `isotropic_preconditioner`; shapes that do not fit; times that do not increase; β(0) = 0 = δ; or
            an equation too stiff to be integrated.

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
        "the map is zero and the layers are balanced, where nothing moves",
        argument="coefficients",
        value=0.0,
        remedy="start from another map, or with an imbalance",
    )
    return finished(_flow(start, samples, t), t)


@float64_jit
def _preconditioner(start: _IsotropicMap) -> Array:
    return nan_outside(start.valid, kronecker_sum(*_roots(*start.in_one_precision())), leading=True)


@float64_jit
def _flow(start: _IsotropicMap, samples: Samples, times: Array) -> MapPath:
    beta, delta, kappa, kept = start.in_one_precision()
    moments = samples.moments()
    # Below |δ|/2κ a map moves as in linear regression, and needs no more digits than that.
    known, kind, rate, cross = map(jax.lax.stop_gradient, (beta, delta, kappa, moments[1]))
    reach = jnp.minimum(jnp.abs(kind) / (2 * rate), jnp.sqrt(jnp.mean(cross**2)))
    size = jnp.maximum(jnp.sqrt(jnp.mean(known**2)), reach)
    valid = start.valid & samples.valid & (jnp.any(beta != 0) | (delta != 0))
    return integrate(_velocity, beta, times, (*moments, delta, kappa, kept), size, valid)


def _velocity(t: Any, beta: Array, arguments: tuple[Array, ...]) -> Array:
    inner, cross, _, delta, kappa, kept = arguments
    gradient = inner @ beta - cross
    outer_root, inner_root = _roots(beta, delta, kappa, kept)
    return -(gradient @ outer_root + inner_root @ gradient)


@jax.custom_jvp
def _roots(beta: Array, delta: Array, kappa: Array, kept: Array) -> tuple[Array, Array]:
    """√(κ² βᵀβ + δ²/4) and √(κ² ββᵀ + δ²/4)."""
    left, sizes, right = jnp.linalg.svd(beta, full_matrices=True)
    sizes = jnp.where(jnp.arange(sizes.shape[-1]) < kept[..., None], sizes, 0)
    rest = jnp.abs(delta) / 2

    def root(vectors: Array) -> Array:
        values = jnp.full(vectors.shape[:-1], rest, beta.dtype)
        values = values.at[..., : sizes.shape[-1]].set(jnp.hypot(kappa * sizes, rest))
        return (vectors * values[..., None, :]) @ vectors.mT

    return root(right.mT), root(left)


@_roots.defjvp
def _(primals: tuple[Array, ...], tangents: tuple[Any, ...]) -> tuple[Any, Any]:
    # Singular vectors have no derivative where singular values are equal; of R² = S follows R dR + dR R = dS.
    (beta, delta, kappa, _), (beta_dot, delta_dot, kappa_dot, _) = primals, tangents
    roots = _roots(*primals)

    def change(root: Array, matrix: Array, moved: Array) -> Array:
        product = moved.mT @ matrix
        square = 2 * kappa * kappa_dot * (matrix.mT @ matrix) + kappa**2 * (product + product.mT)
        return _halved(root, square + delta * delta_dot / 2 * jnp.eye(root.shape[-1], dtype=root.dtype))

    return roots, (change(roots[0], beta, beta_dot), change(roots[1], beta.mT, beta_dot.mT))


@jax.custom_jvp
def _halved(root: Array, square: Array) -> Array:
    """X with R X + X R = S, of symmetric R ≥ 0; nothing where R is zero on both sides."""
    values, vectors = jnp.linalg.eigh(root)
    total = values[..., :, None] + values[..., None, :]
    some = total > root.shape[-1] * jnp.finfo(root.dtype).eps * values[..., -1:, None]
    parts = vectors.mT @ square @ vectors / jnp.where(some, total, 1)
    return vectors @ jnp.where(some, parts, 0) @ vectors.mT


@_halved.defjvp
def _(primals: tuple[Array, Array], tangents: tuple[Array, Array]) -> tuple[Array, Array]:
    (root, _), (root_dot, square_dot) = primals, tangents
    found = _halved(*primals)
    return found, _halved(root, square_dot - root_dot @ found - found @ root_dot)


def trace_drift(
    times: np.ndarray, coefficients: np.ndarray, gradients: np.ndarray, imbalance: float, *, rate: float = 1.0
) -> float:
    """What descent in small steps adds to tr Δ along a path of the map, over the size of a step.

    It is κ² ∫ tr(Gᵀ η₂WWᵀ G) − tr(G η₁AᵀA Gᵀ) dt with the layers of the isotropic family, √(κ²ββᵀ + δ²/4) − δ/2 and
    √(κ²βᵀβ + δ²/4) + δ/2.

    Args:
        times: Shape (times,), close to each other.
        coefficients: β, shape (times, d, c).
        gradients: G = ∂L/∂β, of the same shape.
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
