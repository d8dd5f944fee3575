"""Exact time-dependent solution of the unconstrained feature model of neural collapse.

The features are free parameters, one row H_i per sample, and are followed by a linear classifier. With squared loss,
the model is a two-layer linear network on one-hot inputs, and its modes are the singular vectors of the one-hot
targets.
"""

from __future__ import annotations

from typing import Annotated, Any, NamedTuple, TypeAlias

import jax.numpy as jnp
import numpy as np
import numpy.typing as npt
from annotated_types import Gt
from jax import Array
from jax.typing import ArrayLike
from jaxtyping import Float, Real

from dynascope.compilation import AnyArray, float64_jit
from dynascope.results.named_tuples import short_repr
from dynascope.theory.domain import covers
from dynascope.theory.kernels import nan_outside
from dynascope.theory.scalar_networks import mode_strength
from dynascope.validation import checked, require, require_whole_numbers
from dynascope.validation.bounded import NonNegativeArray, PositiveArray

__all__ = ["ClassModes", "Collapse", "class_modes", "collapse_end", "collapse_trajectory"]

ClassSizes: TypeAlias = Annotated[Real[npt.ArrayLike, " classes"], Gt(0)]
Rate: TypeAlias = Annotated[Real[ArrayLike, ""], Gt(0)]


class ClassModes(NamedTuple):
    """Singular value decomposition Y = U diag(σ) Vᵀ of one-hot targets Y (n, C), or of Y minus its mean.

    Without a bias there are C modes, one per class, with σ_c = √n_c. With a bias there are C − 1 modes, orthogonal to
    the constant vector. The basis of modes with equal strength is arbitrary.

    Attributes:
        strength: Singular values σ in decreasing order, shape (m,).
        sample_vector: Entries of U for a sample of each class, shape (C, m).
        output_vector: V, shape (C, m).
        mean_target: Class frequencies, which the bias fits, shape (C,); zero without a bias.
    """

    strength: Float[np.ndarray, " m"]
    sample_vector: Float[np.ndarray, "classes m"]
    output_vector: Float[np.ndarray, "classes m"]
    mean_target: Float[np.ndarray, " classes"]

    __repr__ = short_repr


class Collapse(NamedTuple):
    """State of the unconstrained feature model at times of shape (...), or at convergence.

    The within-class variability (NC1) is zero at all times, because an aligned initialisation has equal features within
    each class.

    Attributes:
        singular_value: Singular values of H W, in the order of the modes of the targets, shape (..., m).
        loss: ‖H W + 1 biasᵀ − Y‖²/(2n), shape (...).
        class_mean_gram: Inner products μ_i·μ_j of the class means of the features, shape (..., C, C).
        classifier_gram: Inner products w_i·w_j of the columns of W, shape (..., C, C).
        nc2_angle: Largest |cos(M_i, M_j) − (C δ_ij − 1)/(C − 1)| of the centred class means M_i, shape (...).
        nc2_norm: Standard deviation of ‖M_i‖ divided by their mean, shape (...).
        nc3: Frobenius norm ‖Wᵀ/‖W‖ − M/‖M‖‖, shape (...).
        nc3_centred: `nc3` with the columns of W centred over classes, shape (...).
    """

    singular_value: Float[AnyArray, "... m"]
    loss: Float[AnyArray, ...]
    class_mean_gram: Float[AnyArray, "... classes classes"]
    classifier_gram: Float[AnyArray, "... classes classes"]
    nc2_angle: Float[AnyArray, ...]
    nc2_norm: Float[AnyArray, ...]
    nc3: Float[AnyArray, ...]
    nc3_centred: Float[AnyArray, ...]

    __repr__ = short_repr

    @property
    def class_mean_norm(self) -> Float[np.ndarray, "... classes"]:
        """Distances of the class means from the mean over classes, shape (..., C)."""
        centring = np.eye(self.class_mean_gram.shape[-1]) - 1 / self.class_mean_gram.shape[-1]
        return np.sqrt(np.diagonal(centring @ self.class_mean_gram @ centring, axis1=-2, axis2=-1))


@checked
def class_modes(class_sizes: ClassSizes, *, bias: bool = False) -> ClassModes:
    """Compute the modes of one-hot targets, the basis in which `collapse_trajectory` describes the network.

    An initialisation is aligned if H = U diag(a) Rᵀ and W = R diag(b) Vᵀ for some R (p, m) with orthonormal columns,
    p ≥ m, and if the bias, if any, equals the mean of the targets. An aligned network stays aligned during training.

    Args:
        class_sizes: Number of samples n_c of each class, positive integers, shape (C,), C ≥ 2.
        bias: Whether the classifier has a bias, which fits the mean of the targets.

    Raises:
        InputError: If there are fewer than two classes, or a size is not a positive integer.

    Example:
        >>> class_modes([4, 9]).strength, class_modes([4, 4], bias=True).strength
        (array([3., 2.]), array([2.]))
    """
    sizes = np.asarray(class_sizes)
    require_whole_numbers("class_sizes", sizes, least=1)
    classes, roots = len(sizes), np.sqrt(sizes)
    require(
        classes >= 2,
        f"class_sizes is {sizes.tolist()}, which contains fewer than two classes",
        argument="class_sizes",
        value=sizes.tolist(),
        remedy="give the number of samples of two or more classes",
    )
    if not bias:
        order = np.argsort(-roots, kind="stable")
        basis = np.eye(classes)[:, order]
        return ClassModes(roots[order], basis / roots[:, None], basis, np.zeros(classes))
    constant = roots / np.linalg.norm(roots)
    left, strength, right = np.linalg.svd(np.diag(roots) - np.outer(constant, constant * roots))
    frequencies = sizes / sizes.sum()
    return ClassModes(strength[:-1], left[:, :-1] / roots[:, None], right[:-1].T, frequencies)


@covers(
    network="unconstrained features with a linear classifier",
    data="one-hot targets, any class sizes",
    start="aligned, layers of any size",
    gives="singular values, loss, class means, classifier and neural-collapse metrics at any time",
    reference="Nam, DPhil thesis (2024), 3.5",
)
def collapse_trajectory(
    times: NonNegativeArray,
    class_sizes: ClassSizes,
    initial_features: PositiveArray,
    initial_classifier: NonNegativeArray,
    *,
    feature_rate: Rate = 1.0,
    classifier_rate: Rate = 1.0,
    bias: bool = False,
) -> Collapse:
    """Neural collapse under gradient flow from an aligned initialisation.

    The flow is dH/dt = −η_H ∂L/∂H, dW/dt = −η_W ∂L/∂W with L = ‖H W + 1 biasᵀ − Y‖²/(2n) and no weight decay. In the
    modes σ of the targets (see `class_modes`), H = U diag(a) Rᵀ and W = R diag(b) Vᵀ, and each mode obeys

        da/dt = η_H b (σ − a b)/n,    db/dt = η_W a (σ − a b)/n.

    The solution is `mode_strength` for (η_W/η_H)^¼ a and (η_H/η_W)^¼ b at the rate √(η_H η_W) and λ = 1/n. For balanced
    layers (η_W a₀² = η_H b₀²) and s₀ = a₀ b₀, the solution is s(t) = σ/(1 + (σ/s₀ − 1) exp(−2 √(η_H η_W) σ t/n)), where
    σ = √(n/C) for C classes of equal size. The bias stays at the mean of the targets.

    The function can be compiled, and differentiated with respect to all arguments except the class sizes. Inside `jit`,
    values outside the domain give NaN.

    Args:
        times: Gradient-flow times t ≥ 0, any shape.
        class_sizes: Number of samples n_c of each class, positive integers, shape (C,), C ≥ 2.
        initial_features: Singular values a₀ > 0 of H, one for all modes or one per mode, strongest mode first. Use
            equal values for modes of equal strength, because the basis of these modes is arbitrary.
        initial_classifier: Singular values b₀ ≥ 0 of W, in the same form.
        feature_rate: Learning rate η_H > 0 of the features, a number.
        classifier_rate: Learning rate η_W > 0 of the classifier, a number.
        bias: Whether the classifier has a bias, whose initial value is the mean of the targets.

    Raises:
        InputError: If a value is out of range, or the number of initial values is neither one nor the number of modes.

    References:
        Nam, DPhil thesis (2024), chapter 3, for equal classes, equal rates, balanced layers and no bias; the other
        cases are derived here. The thesis sets H = √n W₁, which changes the rates of the two layers and the unit of
        time. Mixon, Parshall & Pi, arXiv:2011.11619, for the model.

    Example:
        >>> import jax
        >>> with jax.enable_x64(True):
        ...     collapse = collapse_trajectory(60.0, [10] * 4, 1e-3**0.5, 1e-3**0.5)
        ...     print(f"{collapse.singular_value[0]:.12f}")
        2.550709998652
    """
    modes = class_modes(class_sizes, bias=bias)
    start = _start(modes, initial_features, initial_classifier, feature_rate, classifier_rate)
    return _trajectory(modes, times, start, float(np.sum(class_sizes)))


@covers(
    network="unconstrained features with a linear classifier",
    data="one-hot targets, any class sizes",
    start="vanishingly small, or aligned of any size",
    gives="singular values, class means, classifier and neural-collapse metrics at convergence",
    reference="Nam, DPhil thesis (2024), 3.5",
)
def collapse_end(
    class_sizes: ClassSizes,
    *,
    initial_features: NonNegativeArray = 0.0,
    initial_classifier: NonNegativeArray = 0.0,
    feature_rate: Rate = 1.0,
    classifier_rate: Rate = 1.0,
    bias: bool = False,
) -> Collapse:
    """Neural collapse at convergence of gradient flow in the unconstrained feature model.

    The flow conserves D = η_W HᵀH − η_H W Wᵀ, and at a minimum H W equals the targets T (Y, or Y minus its mean with a
    bias). Hence (H Hᵀ)² = (η_H/η_W) T Tᵀ + H D Hᵀ/η_W. For vanishing initial weights, D = 0 and

        H Hᵀ = √(η_H/η_W) (T Tᵀ)^½,    WᵀW = √(η_W/η_H) (Tᵀ T)^½,

    for almost all directions of the initial weights, namely those that escape the saddles. For small initial weights,
    the deviation from this limit is of the order of D.

    Without a bias, the class means are orthogonal, μ_i·μ_j = √(η_H/η_W) δ_ij/√n_i. With a bias and classes of equal
    size, they form a simplex, √(η_H/η_W) √(C/n) (δ_ij − 1/C), because the bias learns the mean before the features grow
    (after a time ∝ log(1/scale)). The metric NC1 vanishes. NC2 and NC3 vanish only for classes of equal size, and the
    uncentred NC3 only with a bias; without a bias, it is √(2 − 2√(1 − 1/C)).

    From an aligned initialisation of any size, η_W a² − η_H b² is conserved in each mode. Inside `jit`, values outside
    the domain give NaN.

    Args:
        class_sizes: Number of samples n_c of each class, positive integers, shape (C,), C ≥ 2.
        initial_features: Singular values a₀ ≥ 0 of H for an aligned initialisation, as in `collapse_trajectory`. If
            a₀ = b₀ = 0, the result is the limit of small initial weights with any directions.
        initial_classifier: Singular values b₀ ≥ 0 of W, as in `collapse_trajectory`.
        feature_rate: Learning rate η_H > 0 of the features, a number.
        classifier_rate: Learning rate η_W > 0 of the classifier, a number.
        bias: Whether the classifier has a bias.

    Raises:
        InputError: If a value is out of range, or the number of initial values is neither one nor the number of modes.

    References:
        Nam, DPhil thesis (2024), chapter 3, for equal classes without bias; the other cases are derived here.

    Example:
        >>> end = collapse_end([10] * 4)
        >>> print(f"{end.class_mean_gram[0, 0]:.6f} {end.nc2_angle:.1f} {end.nc3:.4f} {end.nc3_centred:.1f}")
        0.316228 0.0 0.5176 0.0
    """
    modes = class_modes(class_sizes, bias=bias)
    return _end(modes, _start(modes, initial_features, initial_classifier, feature_rate, classifier_rate))


class _Start(NamedTuple):
    """An aligned initialisation, of shape () or (m,), and the learning rates of both layers; all may be traced."""

    features: ArrayLike
    classifier: ArrayLike
    feature_rate: ArrayLike
    classifier_rate: ArrayLike

    def rates(self) -> tuple[Array, Array]:
        """Return √(η_H η_W) and (η_H/η_W)^¼; NaN if the initialisation is out of range."""
        features, classifier = jnp.asarray(self.feature_rate), jnp.asarray(self.classifier_rate)
        sizes = jnp.stack([jnp.min(jnp.where(jnp.isfinite(each), each, -1)) for each in self[:2]])
        inside = (sizes >= 0).all() & (features > 0) & (classifier > 0)
        rate, tilt = jnp.sqrt(features) * jnp.sqrt(classifier), (features / classifier) ** 0.25
        return nan_outside(inside & jnp.isfinite(rate), (rate, tilt))


def _start(
    modes: ClassModes,
    initial_features: ArrayLike,
    initial_classifier: ArrayLike,
    feature_rate: ArrayLike,
    classifier_rate: ArrayLike,
) -> _Start:
    """Validate that there is one singular value for all modes or one per mode, and return the initialisation."""
    for name, each in (("initial_features", initial_features), ("initial_classifier", initial_classifier)):
        shape = np.shape(each)
        require(
            shape in ((), modes.strength.shape),
            f"{name} has shape {shape}, but the number of modes is {len(modes.strength)}",
            argument=name,
            value=shape,
            remedy="give one number for all modes, or one per mode",
        )
    return _Start(initial_features, initial_classifier, feature_rate, classifier_rate)


@float64_jit
def _trajectory(modes: ClassModes, times: Array, start: _Start, samples: Any) -> Collapse:
    rate, tilt = start.rates()
    a, b = (jnp.broadcast_to(each, modes.strength.shape) for each in start[:2])
    rate = nan_outside((a > 0).all(), rate)
    mode = mode_strength(times[..., None], modes.strength, 1 / samples, a / tilt, b * tilt, rate)
    loss = jnp.sum(mode.residual**2, -1) / (2 * samples)
    return _collapse(modes, mode.output_weight * tilt, mode.input_weight / tilt, mode.strength, loss)


@float64_jit
def _end(modes: ClassModes, start: _Start) -> Collapse:
    _, tilt = start.rates()
    a, b = (jnp.broadcast_to(each, modes.strength.shape) for each in start[:2])
    known = ~jnp.isnan(tilt).any()
    imbalance = (a / tilt) ** 2 - (b * tilt) ** 2
    strength = jnp.asarray(modes.strength, imbalance.dtype)
    # The larger layer is computed first, to avoid cancellation in the smaller one.
    larger = jnp.sqrt((jnp.abs(imbalance) + jnp.hypot(imbalance, 2 * strength)) / 2)
    smaller = strength / larger
    a = jnp.where(imbalance >= 0, larger, smaller)
    b = jnp.where(imbalance >= 0, smaller, larger)
    loss = jnp.zeros((), strength.dtype)
    return _collapse(modes, a * tilt, b / tilt, *nan_outside(known, (strength, loss)))


def _collapse(modes: ClassModes, a: AnyArray, b: AnyArray, strength: AnyArray, loss: Array) -> Collapse:
    """Compute the state from the singular values a of H and b of W, shape (..., m)."""
    classes = len(modes.mean_target)
    # Class means and columns of W, as rows in the basis R of features, divided by their largest entry.
    a_unit, b_unit = jnp.max(a, -1)[..., None, None], jnp.max(b, -1)[..., None, None]
    means = jnp.asarray(modes.sample_vector) * a[..., None, :] / a_unit
    columns = jnp.asarray(modes.output_vector) * b[..., None, :] / b_unit
    centred = means - jnp.mean(means, -2, keepdims=True)
    norms = jnp.sqrt(jnp.sum(centred**2, -1))
    units = centred / norms[..., None]
    simplex = (classes * np.eye(classes) - 1) / (classes - 1)
    distances = []
    for each in (columns, columns - jnp.mean(columns, -2, keepdims=True)):
        difference = each / _size(each) - centred / _size(centred)
        distances.append(jnp.sqrt(jnp.sum(difference**2, (-2, -1))))
    return Collapse(
        strength,
        loss,
        a_unit**2 * means @ means.mT,
        b_unit**2 * columns @ columns.mT,
        jnp.max(jnp.abs(units @ units.mT - simplex), (-2, -1)),
        _deviation(norms) / jnp.mean(norms, -1),
        *distances,
    )


def _deviation(values: Array) -> Array:
    """Standard deviation over the last axis, with a zero gradient at equal values, where it is not differentiable."""
    variance = jnp.var(values, -1)
    positive = variance > 0
    return jnp.where(positive, jnp.sqrt(jnp.where(positive, variance, 1)), 0)


def _size(rows: Array) -> Array:
    return jnp.sqrt(jnp.sum(rows**2, (-2, -1), keepdims=True))
