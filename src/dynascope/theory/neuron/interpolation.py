"""Which of the maps that fit the data a neuron ends at: its implicit bias, without training."""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import Bool, Float

from dynascope.compilation import AnyArray, float64_jit
from dynascope.results.named_tuples import short_repr
from dynascope.theory.assumptions import ONE_OUTPUT
from dynascope.theory.domain import covers
from dynascope.theory.kernels import nan_outside
from dynascope.theory.layer_rates import LayerRates, clock_of
from dynascope.theory.neuron.coordinates import parts, polar
from dynascope.theory.neuron.final_sign import ROUNDING, followed_sign, whitened_sign
from dynascope.theory.neuron.function_space import Inputs, MapStart, covers_map, samples
from dynascope.theory.neuron.state import Neuron, Vector
from dynascope.theory.units import in_units
from dynascope.validation import require_shape
from dynascope.validation.bounded import FiniteArray

__all__ = ["Interpolator", "implicit_bias_objective", "interpolator"]

_ISOTROPIC = 1e-8  # relative deviation of XᵀX from a multiple of a projection below which the closed form decides
_UNSEEN = 1e-6  # share of the targets' power outside the range of the inputs that is worth a warning


class Interpolator(NamedTuple):
    """Where the training of a neuron ends.

    Attributes:
        coefficients: β∞, shape (..., d).
        output_weight: a∞, shape (...).
        sign_changed: Whether a∞ and a(0) differ in sign, shape (...).
        stays: Whether the start is a fixed point or runs into the saddle a = 0, so that β∞ = 0 and the data are not
            fitted, shape (...).
        moves: Whether the start is no fixed point, shape (...).
        imbalance: δ∥ = η_w a² − η_a ‖Πw‖², the imbalance within the directions that the inputs span, shape (...).
        fitted_power: E ŷ² of the targets' projection ŷ on the range of the inputs, shape ().
        unexplained: E(y − ŷ)², which no linear map removes, shape ().
    """

    coefficients: Float[AnyArray, "... d"]
    output_weight: Float[AnyArray, ...]
    sign_changed: Bool[AnyArray, ...]
    stays: Bool[AnyArray, ...]
    moves: Bool[AnyArray, ...]
    imbalance: Float[AnyArray, ...]
    fitted_power: Float[AnyArray, ""]
    unexplained: Float[AnyArray, ""]

    __repr__ = short_repr

    @property
    def status(self) -> np.ndarray:
        """How the end is reached: "converges", "power law" (a target of zero), "saddle" (never left) or "static"."""
        slow = (np.asarray(self.fitted_power) == 0) & (np.asarray(self.imbalance) == 0)
        return np.select(
            [~np.asarray(self.moves), np.asarray(self.stays), np.broadcast_to(slow, np.shape(self.stays))],
            ["static", "saddle", "power law"],
            "converges",
        )

    @property
    def warnings(self) -> tuple[str, ...]:
        """What to know before calling β∞ an interpolator, one sentence each."""
        known = float(self.unexplained), float(self.fitted_power)
        found = []
        if known[0] > _UNSEEN**2 * sum(known):
            share = known[0] / sum(known)
            found.append(
                f"No linear map fits the targets: {share:.2g} of their power is outside the range of the inputs, "
                "and the coefficients are those of the least-squares limit."
            )
        if np.any(self.stays):
            found.append("The start does not leave the saddle at zero, which the smallest perturbation would.")
        return tuple(found)


@covers(
    network="single linear neuron f(x) = a wᵀx",
    data="any inputs, also of low rank, any targets",
    start="any",
    gives="the linear map at the end of training, without training",
    reference="arXiv:2406.06158",
    assumes=(ONE_OUTPUT,),
)
@in_units(
    "inputs",
    "rates.second",
    "rates.first",
    "targets|initial_output|initial_weights",
    inputs="x",
    targets="a w x",
    initial_output="a",
    initial_weights="w",
    rates={"first": "a^-2 x^-2 t^-1", "second": "w^-2 x^-2 t^-1"},
    gives=("a w", "a", "", "", "", "x^-2 t^-1", "a^2 w^2 x^2", "a^2 w^2 x^2"),
)
def interpolator(
    inputs: Inputs,
    targets: FiniteArray,
    initial_output: FiniteArray,
    initial_weights: Vector,
    *,
    rates: LayerRates = LayerRates(),
) -> Interpolator:
    """The linear map β∞ at which gradient flow on a single linear neuron f(x) = a wᵀx ends.

    Of all maps that fit the data it is the one that minimises `implicit_bias_objective`; with the projection Π = X⁺X
    on the directions that the inputs span, the minimum is

    β∞ = X⁺y + a∞ (I − Π) w₀, η_w a∞² = ½(δ∥ + √(δ∥² + 4 η_a η_w ‖X⁺y‖²)), δ∥ = η_w a₀² − η_a ‖Πw₀‖².

    The directions that the data do not see keep their weights w₀ and are rescaled by a∞. The output weight a keeps
    its sign if δ∥ ≥ 0 or if the loss starts below that of the zero map, L(0) < ½ E y². Otherwise it may pass zero,
    where the theorem as published ends; its final sign then is that of c₊, the component of (a, Πw) along the
    direction that grows, if all nonzero singular values of X are equal, and else is found by following the flow in
    function space until the loss is below that of the zero map. If y is not in the range of X, the same formula gives
    the least-squares limit, and `warnings` of the result says so.

    Args:
        inputs: X, shape (n, d), of any rank. Singular values below the rounding of the largest count as zero.
        targets: y, shape (n,) or (n, 1).
        initial_output: a₀; it and the rates broadcast with the leading dimensions of w₀.
        initial_weights: w₀, shape (..., d).
        rates: η_w of the weights and η_a of the output weight.

    Returns:
        `Interpolator`. It does not depend on whether the loss is a mean or a sum. Can be compiled; differentiable with
        respect to all but the rank of X.

    Raises:
        InputError: A value that is not finite, shapes that do not fit, or a rate that is not positive. Where JAX traces
            them, such values give NaN.

    References:
        Kunin et al., arXiv:2406.06158, theorem 3.1, which extends Azulay et al., arXiv:2102.09769, theorem 2. The
        explicit minimum and the sign are ours.

    Example:
        >>> x, y = np.array([[1.0, 2.0, 0.0, 1.0], [0.0, 1.0, -1.0, 1.0]]), np.array([1.0, 2.0])
        >>> with jax.enable_x64(True):
        ...     end = jax.device_get(interpolator(x, y, 0.5, np.array([0.3, -0.2, 0.4, 0.1])))
        >>> end.coefficients.round(6).tolist(), float(end.output_weight.round(6)), str(end.status)
        ([-0.179373, 0.102393, -0.92302, 0.974587], 1.154701, 'converges')
    """
    x, y = samples(inputs, targets)
    state = {"initial_output": initial_output, "initial_weights": initial_weights}
    return _interpolator(x, y, Neuron.checked(rates, inputs=x.shape[1], **state))


@covers_map(
    data="any inputs, any targets in their range",
    gives="the function of the linear map that training minimises among all maps that fit",
)
@in_units(
    "coefficients|initial_coefficients",
    "rates.second",
    "rates.first",
    coefficients="b",
    initial_coefficients="b",
    imbalance="s^2",
    rates={"first": "b^-1 s^2", "second": "b^-1 s^2"},
    gives="s^3",
)
def implicit_bias_objective(
    coefficients: Vector,
    initial_coefficients: Vector,
    imbalance: FiniteArray,
    *,
    rates: LayerRates = LayerRates(),
) -> Float[AnyArray, ...]:
    """What gradient flow on a single linear neuron minimises among the maps with Xβ = y: Ψ(β) − κ ψ β̂₀ᵀβ.

    Ψ(β) = ⅓ (R − 2δ) √(R + δ) with R = √(δ² + 4κ²‖β‖²) and κ = √(η_a η_w), and ψ = √(R₀ − δ) at the start β₀.
    Ψ is strictly convex, ∇Ψ = κ √(R − δ) β̂, and ∇²Ψ M = κ² √(R + δ) I with the `preconditioner` M, so that training
    is mirror descent on Ψ in another time. Far upstream it is ‖β − β₀‖² up to a factor and a constant, from a small
    balanced start ‖β‖^(3/2), and far downstream ‖β‖ − β̂₀ᵀβ, which favours the initial direction. For δ < 0 it has
    the tip of a cone at β = 0. The theorem asks that β(t) ≠ 0 throughout; if the output weight changes its sign, β∞
    minimises the same with −β̂₀, and `interpolator` says whether it does.

    Args:
        coefficients: β, shape (..., d).
        initial_coefficients: β₀, shape (..., d).
        imbalance: δ = η_w a² − η_a ‖w‖²; it and the rates broadcast with the leading dimensions of β.
        rates: η_w of the weights and η_a of the output weight.

    Returns:
        The objective, shape (...). Differentiable except at the tip.

    Raises:
        InputError: A value that is not finite, shapes that do not fit, a rate that is not positive, or β₀ = 0 with
            δ ≤ 0. Where JAX traces them, such values give NaN.

    References:
        Kunin et al., arXiv:2406.06158, theorem 3.1, with learning rates.

    Example:
        >>> start = np.array([0.15, -0.1, 0.2, 0.05])
        >>> print(f"{implicit_bias_objective(start, start, -0.05):.6f}")
        -0.058926
    """
    require_shape("coefficients", coefficients, (..., None))
    *leading, length = np.shape(coefficients)
    begun = ("initial_coefficients", initial_coefficients, imbalance, rates)
    return _objective(coefficients, MapStart.checked(*begun, length=length, coefficients=tuple(leading)))


@float64_jit
def _objective(beta: Array, start: MapStart) -> Array:
    delta, kappa = start.imbalance, clock_of(start.rates)
    (size, _), (first_size, direction) = polar(beta), polar(start.coefficients)
    root, _ = _root_parts(size, delta, kappa)
    _, weight_root = _root_parts(first_size, delta, kappa)
    potential = (jnp.hypot(delta, 2 * kappa * size) - 2 * delta) * root / 3
    objective = potential - kappa * weight_root * jnp.sum(direction * beta, axis=-1)
    return nan_outside(start.valid & jnp.all(jnp.isfinite(beta), axis=-1), objective, leading=True)


def _root_parts(size: Array, delta: Array, kappa: Array) -> tuple[Array, Array]:
    """√(R + δ) and √(R − δ), whose product is 2κ‖β‖; the smaller of them is linear in ‖β‖."""
    large = jnp.sqrt(jnp.hypot(delta, 2 * kappa * size) + jnp.abs(delta))
    small = 2 * kappa * size / jnp.where(large > 0, large, 1)
    upstream = delta >= 0
    return jnp.where(upstream, large, small), jnp.where(upstream, small, large)


class _Outset(NamedTuple):
    """What the start says of the end, in units in which both layers have the same rate and β = a w is as before.

    Attributes:
        output: a₀, shape (...).
        seen: Πw₀, shape (..., d).
        unseen: (I − Π) w₀, shape (..., d).
        least: X⁺y, shape (d,).
        imbalance: a₀² − ‖Πw₀‖², shape (...).
        moves: Whether the start is no fixed point.
        sign: The sign of a∞ where it is certain; zero where β ends at zero without having fitted the targets.
        certain: Where the flow need not be followed.
    """

    output: Array
    seen: Array
    unseen: Array
    least: Array
    imbalance: Array
    moves: Array
    sign: Array
    certain: Array


@float64_jit
def _interpolator(x: Array, y: Array, neuron: Neuron) -> Interpolator:
    (a, w, rates), known = neuron, jnp.all(jnp.isfinite(x)) & jnp.all(jnp.isfinite(y))
    valid = known & neuron.valid
    dtype, batch = jnp.result_type(x, y, a, w, *rates), valid.shape
    x, y = x.astype(dtype), y.astype(dtype)
    a, eta_w, eta_a = (jnp.broadcast_to(jnp.asarray(value, dtype), batch) for value in (a, *rates))
    w = jnp.broadcast_to(w.astype(dtype), (*batch, w.shape[-1]))

    outset = _outset(x, y, a, w, eta_a, eta_w)
    # What is no number is not followed.
    outset = outset._replace(certain=outset.certain | ~valid)
    start = (x, outset.output, outset.seen, outset.imbalance, outset.least, outset.certain)
    followed = jax.lax.cond(
        jnp.all(outset.certain), lambda *_: outset.sign, followed_sign, *map(jax.lax.stop_gradient, start)
    )
    end = _ending(x, y, eta_a, eta_w, outset, jnp.where(outset.certain, outset.sign, followed))
    kinds = nan_outside(known, end._asdict(), leading=True)
    batched = ("coefficients", "output_weight", "imbalance")
    return Interpolator(**kinds | nan_outside(valid, {name: kinds[name] for name in batched}, leading=True))


def _outset(x: Array, y: Array, a: Array, w: Array, eta_a: Array, eta_w: Array) -> _Outset:
    ratio = (eta_w / eta_a) ** 0.25
    a, w = a * ratio, w / ratio[..., None]
    inverse = jnp.linalg.pinv(x)
    least = inverse @ y
    no_target = jnp.linalg.norm(x @ least) <= ROUNDING * jnp.linalg.norm(y)
    least = jnp.where(no_target, 0, least)
    seen = (w @ x.T) @ inverse.T
    seen_size, _ = polar(seen)
    imbalance = (a - seen_size) * (a + seen_size)

    # How far the loss is below that of the zero map, times n.
    function = a[..., None] * (seen @ x.T)
    below = jnp.sum(function * (x @ least - function / 2), axis=-1) > 0
    power = jnp.sum(x**2)
    isotropic = jnp.sum((x.T - inverse * power / jnp.sum(x * inverse.T)) ** 2) <= _ISOTROPIC**2 * power
    closed = isotropic & ~no_target
    keeps = no_target | below | (imbalance > 0) | ((imbalance == 0) & (a != 0))
    sign = jnp.where(closed, whitened_sign(least, a, seen, imbalance), jnp.sign(a))

    # ȧ ∝ w·γ and ẇ ∝ a γ.
    pull, push = y @ x, function @ x
    forces = jnp.linalg.norm(push, axis=-1) + jnp.linalg.norm(pull)
    turns = jnp.linalg.norm(push - pull, axis=-1) > ROUNDING * forces
    lifts = jnp.abs(w @ pull) > ROUNDING * jnp.linalg.norm(w, axis=-1) * jnp.linalg.norm(pull)
    moves = jnp.where(a == 0, lifts, turns)
    return _Outset(
        output=a,
        seen=seen,
        unseen=w - seen,
        least=least,
        imbalance=imbalance,
        moves=moves,
        sign=jnp.where(moves | (a != 0), sign, 0),
        certain=closed | keeps | ~moves,
    )


def _ending(x: Array, y: Array, eta_a: Array, eta_w: Array, outset: _Outset, sign: Array) -> Interpolator:
    (reach, _), fitted = polar(outset.least), x @ outset.least
    output = sign * jnp.sqrt(parts(reach, outset.imbalance, jnp.ones_like(outset.imbalance))[0])
    return Interpolator(
        coefficients=jnp.abs(sign)[..., None] * outset.least + output[..., None] * outset.unseen,
        output_weight=output / (eta_w / eta_a) ** 0.25,
        sign_changed=sign * outset.output < 0,
        stays=(sign == 0) & (reach > 0),
        moves=outset.moves,
        imbalance=outset.imbalance * jnp.sqrt(eta_a * eta_w),
        fitted_power=jnp.mean(fitted**2),
        unexplained=jnp.mean((y - fitted) ** 2),
    )
