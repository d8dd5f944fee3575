"""The unconstrained feature model: why features of a class collapse to one point, and along which path.

Features are free parameters, one row H_i for each sample, under a linear classifier. With squared loss this is a
two-layer linear network on one-hot inputs, whose modes are those of the one-hot targets.
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
    """The singular value decomposition of one-hot targets Y (n, C), or of Y minus its mean, Y = U diag(σ) Vᵀ.

    Without a bias there are C modes, the classes themselves, σ_c = √n_c. With one there are C − 1, orthogonal to the
    constant. A basis among modes of equal strength is arbitrary.

    Attributes:
        strength: σ, strongest first, shape (m,).
        sample_vector: The entry of U for a sample of each class, shape (C, m).
        output_vector: V, shape (C, m).
        mean_target: What the bias fits, the class frequencies, shape (C,); zero without a bias.
    """

    strength: Float[np.ndarray, " m"]
    sample_vector: Float[np.ndarray, "classes m"]
    output_vector: Float[np.ndarray, "classes m"]
    mean_target: Float[np.ndarray, " classes"]

    __repr__ = short_repr


class Collapse(NamedTuple):
    """The unconstrained feature model at some times (...), or at its end.

    NC1 is zero throughout, in both forms: the features of a class are equal from an aligned start on.

    Attributes:
        singular_value: Singular values of H W of the modes, strongest target first, shape (..., m).
        loss: ‖H W + 1 biasᵀ − Y‖²/(2n), shape (...).
        class_mean_gram: Inner products μ_i·μ_j of the class means of the features, shape (..., C, C).
        classifier_gram: Inner products w_i·w_j of the columns of W, shape (..., C, C).
        nc2_angle: Largest |cos(M_i, M_j) − (C δ_ij − 1)/(C − 1)| of the centred class means M_i, shape (...).
        nc2_norm: Standard deviation of ‖M_i‖ over their mean, shape (...).
        nc3: ‖Wᵀ/‖W‖ − M/‖M‖‖ in Frobenius norm, shape (...).
        nc3_centred: The same with the columns of W centred over classes, shape (...).
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
        """Distances of the class means from their mean, shape (..., C)."""
        centring = np.eye(self.class_mean_gram.shape[-1]) - 1 / self.class_mean_gram.shape[-1]
        return np.sqrt(np.diagonal(centring @ self.class_mean_gram @ centring, axis1=-2, axis2=-1))


@checked
def class_modes(class_sizes: ClassSizes, *, bias: bool = False) -> ClassModes:
    """The modes of one-hot targets, from which `collapse_trajectory` starts.

    A start is aligned if H = U diag(a) Rᵀ and W = R diag(b) Vᵀ for some R (p, m) with orthonormal columns, p ≥ m, and,
    with a bias, if this is the mean of the targets; it then stays so.

    Args:
        class_sizes: n_c, whole numbers, shape (C,), at least two classes.
        bias: Whether the outputs have a bias, which fits the mean of the targets.

    Raises:
        InputError: Fewer than two classes, or a size that is not a positive whole number.

    Example:
        >>> class_modes([4, 9]).strength, class_modes([4, 4], bias=True).strength
        (array([3., 2.]), array([2.]))
    """
    sizes = np.asarray(class_sizes)
    require_whole_numbers("class_sizes", sizes, least=1)
    classes, roots = len(sizes), np.sqrt(sizes)
    require(
        classes >= 2,
        f"class_sizes is {sizes.tolist()}",
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
    start="aligned, any sizes of the layers",
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
    """How classes collapse under gradient flow from an aligned start.

    The flow is dH/dt = −η_H ∂L/∂H, dW/dt = −η_W ∂L/∂W with L = ‖H W + 1 biasᵀ − Y‖²/(2n), no weight decay. In the
    modes σ of the targets (see `class_modes`), H = U diag(a) Rᵀ and W = R diag(b) Vᵀ, each pair follows

        da/dt = η_H b (σ − a b)/n,    db/dt = η_W a (σ − a b)/n,

    which is `mode_strength` for (η_W/η_H)^¼ a and (η_H/η_W)^¼ b at the rate √(η_H η_W) and λ = 1/n. For balanced
    layers, η_W a₀² = η_H b₀², and s₀ = a₀ b₀ this is s(t) = σ/(1 + (σ/s₀ − 1) exp(−2 √(η_H η_W) σ t/n)), where
    σ = √(n/C) for C classes of one size. The bias stays at the mean of the targets.

    The source has equal classes, equal rates, balanced layers and no bias; the rest is derived here. Its time differs:
    it writes H = √n W₁, which changes the rates of the two layers. Can be compiled and differentiated, but for the
    sizes. Values traced by JAX that are outside the domain give NaN.

    Args:
        times: Gradient-flow times t ≥ 0, any shape.
        class_sizes: n_c, whole numbers, shape (C,), as of `class_modes`.
        initial_features: a₀ > 0, the singular values of H, one for all modes or one for each, strongest first. Among
            modes of equal strength use equal starts: their basis is arbitrary.
        initial_classifier: b₀ ≥ 0, the singular values of W, likewise.
        feature_rate: η_H > 0, a number.
        classifier_rate: η_W > 0, a number.
        bias: Whether there is a bias, which starts at the mean of the targets.

    Raises:
        InputError: A value out of range, or starts that are not one for all or one for each mode.

    References:
        Nam, DPhil thesis (2024), chapter 3; Mixon, Parshall & Pi, arXiv:2011.11619, for the model.

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
    start="any that is vanishingly small, or aligned",
    gives="singular values, class means, classifier and neural-collapse metrics at the end",
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
    """Where gradient flow of the unconstrained feature model ends.

    The flow conserves D = η_W HᵀH − η_H W Wᵀ, and at a minimum H W is the targets T (Y, or Y minus its mean with a
    bias). Hence (H Hᵀ)² = (η_H/η_W) T Tᵀ + H D Hᵀ/η_W, and from a start that vanishes, D = 0,

        H Hᵀ = √(η_H/η_W) (T Tᵀ)^½,    WᵀW = √(η_W/η_H) (Tᵀ T)^½,

    whatever its directions, as long as it leaves the saddles, which almost every start does. From a small one the end
    differs by the order of D. So class means without a bias are orthogonal, μ_i·μ_j = √(η_H/η_W) δ_ij/√n_i; with one
    and equal classes they are a simplex, √(η_H/η_W) √(C/n) (δ_ij − 1/C), because the bias learns the mean before the
    features have grown, which takes them the time log(1/scale). NC1 vanishes; NC2 and NC3 do so for equal classes only,
    and NC3 of the classifier as it is only with a bias: else it is √(2 − 2√(1 − 1/C)).

    From an aligned start of any size η_W a² − η_H b² is conserved in each mode. Values traced by JAX that are outside
    the domain give NaN.

    Args:
        class_sizes: n_c, whole numbers, shape (C,), as of `class_modes`.
        initial_features: a₀ ≥ 0 of an aligned start, as in `collapse_trajectory`; zero, with b₀, for the limit of
            small initial weights of any kind.
        initial_classifier: b₀ ≥ 0.
        feature_rate: η_H > 0, a number.
        classifier_rate: η_W > 0, a number.
        bias: Whether there is a bias.

    Raises:
        InputError: As `collapse_trajectory`.

    References:
        Nam, DPhil thesis (2024), chapter 3, for equal classes without bias; the rest is derived here.

    Example:
        >>> end = collapse_end([10] * 4)
        >>> print(f"{end.class_mean_gram[0, 0]:.6f} {end.nc2_angle:.1f} {end.nc3:.4f} {end.nc3_centred:.1f}")
        0.316228 0.0 0.5176 0.0
    """
    modes = class_modes(class_sizes, bias=bias)
    return _end(modes, _start(modes, initial_features, initial_classifier, feature_rate, classifier_rate))


class _Start(NamedTuple):
    """An aligned start, of shape () or (m,), and the rates of both layers; JAX may trace any part."""

    features: ArrayLike
    classifier: ArrayLike
    feature_rate: ArrayLike
    classifier_rate: ArrayLike

    def rates(self) -> tuple[Array, Array]:
        """√(η_H η_W) and (η_H/η_W)^¼, NaN where the start is out of range."""
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
    """The start, after checking that there is one singular value for all modes or one for each."""
    for name, each in (("initial_features", initial_features), ("initial_classifier", initial_classifier)):
        shape = np.shape(each)
        require(
            shape in ((), modes.strength.shape),
            f"{name} has shape {shape}",
            argument=name,
            value=shape,
            remedy=f"give one number, or one for each of the {len(modes.strength)} modes",
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
    # The larger layer first: the smaller one would be a difference of equal numbers.
    larger = jnp.sqrt((jnp.abs(imbalance) + jnp.hypot(imbalance, 2 * strength)) / 2)
    smaller = strength / larger
    a = jnp.where(imbalance >= 0, larger, smaller)
    b = jnp.where(imbalance >= 0, smaller, larger)
    loss = jnp.zeros((), strength.dtype)
    return _collapse(modes, a * tilt, b / tilt, *nan_outside(known, (strength, loss)))


def _collapse(modes: ClassModes, a: AnyArray, b: AnyArray, strength: AnyArray, loss: Array) -> Collapse:
    """What follows from the singular values a of H and b of W, shape (..., m)."""
    classes = len(modes.mean_target)
    # In the basis R of features: class means and columns of W as rows, over their largest entry.
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
    """The standard deviation, with a slope of zero where it has its corner, at equal values."""
    variance = jnp.var(values, -1)
    positive = variance > 0
    return jnp.where(positive, jnp.sqrt(jnp.where(positive, variance, 1)), 0)


def _size(rows: Array) -> Array:
    return jnp.sqrt(jnp.sum(rows**2, (-2, -1), keepdims=True))
