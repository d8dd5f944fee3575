"""Implicit bias of a neuron: the interpolating linear map at the end of training, computed without training."""

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
from dynascope.theory.neuron.final_sign import ROUNDING, integrated_sign, whitened_sign
from dynascope.theory.neuron.function_space import Inputs, MapStart, covers_map, samples
from dynascope.theory.neuron.state import Neuron, Vector
from dynascope.theory.units import in_units
from dynascope.validation import require_shape
from dynascope.validation.bounded import FiniteArray

__all__ = ["Interpolator", "implicit_bias_objective", "interpolator"]

_ISOTROPIC = 1e-8  # relative deviation of XᵀX from a multiple of a projection, below which the closed form is used
_UNSEEN = 1e-6  # relative size of the targets outside the range of the inputs, above which a warning is given


class Interpolator(NamedTuple):
    """Linear map and output weight of a neuron at the end of training.

    Attributes:
        coefficients: β∞, shape (..., d).
        output_weight: a∞, shape (...).
        sign_changed: Whether a∞ and a(0) differ in sign, shape (...).
        stays: Whether the data are never fitted (β∞ = 0), because the initial weights are a fixed point or flow into
            the saddle a = 0, shape (...).
        moves: Whether the flow leaves the initial weights, shape (...).
        imbalance: δ∥ = η_w a² − η_a ‖Πw‖², the imbalance within the span of the inputs, shape (...).
        fitted_power: E ŷ², where ŷ is the projection of the targets onto the range of the inputs, shape ().
        unexplained: E(y − ŷ)², the part of the targets that no linear map fits, shape ().
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
        """How training ends: "converges", "power law" (zero target), "saddle" (trapped) or "static" (fixed point)."""
        slow = (np.asarray(self.fitted_power) == 0) & (np.asarray(self.imbalance) == 0)
        return np.select(
            [~np.asarray(self.moves), np.asarray(self.stays), np.broadcast_to(slow, np.shape(self.stays))],
            ["static", "saddle", "power law"],
            "converges",
        )

    @property
    def warnings(self) -> tuple[str, ...]:
        """Reasons why β∞ does not interpolate the data, one sentence per reason."""
        known = float(self.unexplained), float(self.fitted_power)
        found = []
        if known[0] > _UNSEEN**2 * sum(known):
            share = known[0] / sum(known)
            found.append(
                f"No linear map fits the targets: {share:.2g} of their power is outside the range of the inputs, "
                "and the coefficients are those of the least-squares limit."
            )
        if np.any(self.stays):
            found.append("The flow stays in the saddle at zero. Any perturbation of the weights would let it escape.")
        return tuple(found)


@covers(
    network="single linear neuron f(x) = a wᵀx",
    data="any inputs, including low rank, any targets",
    start="any",
    gives="the linear map at the end of training, computed without training",
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
    """Compute the limit β∞ of the linear map of a single linear neuron f(x) = a wᵀx under gradient flow.

    Among all maps that fit the data, β∞ minimises `implicit_bias_objective`. With the projection Π = X⁺X onto the span
    of the inputs, the minimiser is

    β∞ = X⁺y + a∞ (I − Π) w₀, η_w a∞² = ½(δ∥ + √(δ∥² + 4 η_a η_w ‖X⁺y‖²)), δ∥ = η_w a₀² − η_a ‖Πw₀‖².

    Directions outside the span of the inputs keep their initial weights w₀, rescaled by a∞. The output weight a keeps
    its sign if δ∥ ≥ 0 or if the initial loss is below that of the zero map, L(0) < ½ E y². Otherwise, a may pass
    through zero; the published theorem excludes this case. If all nonzero singular values of X are equal, the final
    sign is that of c₊, the component of (a, Πw) along the growing direction. For other inputs, the function-space flow
    is integrated until the loss is below that of the zero map. If y is not in the range of X, the same formula
    describes the least-squares limit, and the `warnings` of the result report this case.

    Args:
        inputs: X, shape (n, d), of any rank. Singular values below the rounding error of the largest count as zero.
        targets: y, shape (n,) or (n, 1).
        initial_output: a₀; the output weight and the rates broadcast with the leading dimensions of w₀.
        initial_weights: w₀, shape (..., d).
        rates: Learning rates η_w of the weights and η_a of the output weight.

    Returns:
        The limit, which is the same whether the loss is a mean or a sum over samples. The function can be compiled. It
        is differentiable with respect to all arguments as long as the rank of X does not change.

    Raises:
        InputError: If a value is not finite, shapes do not match, or a rate is not positive. Inside `jit`, values
            outside this domain give NaN.

    References:
        Kunin et al., arXiv:2406.06158, theorem 3.1, which extends Azulay et al., arXiv:2102.09769, theorem 2. The
        explicit minimum and the sign are derived here.

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
    gives="the objective that gradient flow minimises among the maps that fit the data",
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
    """Compute the objective that gradient flow on a single linear neuron minimises among the maps with Xβ = y.

    Ψ(β) − κ ψ β̂₀ᵀβ, Ψ(β) = ⅓ (R − 2δ) √(R + δ), ψ = √(R₀ − δ)

    Here R = √(δ² + 4κ²‖β‖²), κ = √(η_a η_w), and R₀ is R at the initial map β₀. Ψ is strictly convex with ∇Ψ = κ
    √(R − δ) β̂, and ∇²Ψ M = κ² √(R + δ) I with the `preconditioner` M. Training is therefore mirror descent on Ψ in a
    rescaled time. Up to a factor and a constant, the objective is ‖β − β₀‖² for δ ≫ 0 (upstream) and ‖β‖^(3/2) for a
    small balanced initialisation. For δ ≪ 0 (downstream), it is ‖β‖ − β̂₀ᵀβ, which favours the initial direction. For
    negative δ, Ψ has a conical singularity at β = 0.

    The theorem requires β(t) ≠ 0 throughout. If the output weight changes its sign, β∞ minimises the objective with
    −β̂₀ instead of β̂₀; `sign_changed` in the result of `interpolator` reports this case.

    Args:
        coefficients: β, shape (..., d).
        initial_coefficients: β₀, shape (..., d).
        imbalance: δ = η_w a² − η_a ‖w‖²; the imbalance and the rates broadcast with the leading dimensions of β.
        rates: Learning rates η_w of the weights and η_a of the output weight.

    Returns:
        The objective, shape (...). It is differentiable except at the singularity β = 0.

    Raises:
        InputError: If a value is not finite, shapes do not match, a rate is not positive, or β₀ = 0 with δ ≤ 0. Inside
            `jit`, values outside this domain give NaN.

    References:
        Kunin et al., arXiv:2406.06158, theorem 3.1, here with learning rates.

    Example:
        >>> start = np.array([0.15, -0.1, 0.2, 0.05])
        >>> print(f"{implicit_bias_objective(start, start, -0.05):.6f}")
        -0.058926
    """
    require_shape("coefficients", coefficients, (..., None))
    *leading, length = np.shape(coefficients)
    initial_map = ("initial_coefficients", initial_coefficients, imbalance, rates)
    return _objective(coefficients, MapStart.checked(*initial_map, length=length, coefficients=tuple(leading)))


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
    """Return √(R + δ) and √(R − δ), whose product is 2κ‖β‖; the smaller of them is linear in ‖β‖."""
    large = jnp.sqrt(jnp.hypot(delta, 2 * kappa * size) + jnp.abs(delta))
    small = 2 * kappa * size / jnp.where(large > 0, large, 1)
    upstream = delta >= 0
    return jnp.where(upstream, large, small), jnp.where(upstream, small, large)


class _InitialState(NamedTuple):
    """Analysis of the initial weights, in units in which both layers have the same rate and β = a w is unchanged.

    Attributes:
        output: a₀, shape (...).
        seen: Πw₀, shape (..., d).
        unseen: (I − Π) w₀, shape (..., d).
        least: X⁺y, shape (d,).
        imbalance: a₀² − ‖Πw₀‖², shape (...).
        moves: Whether the flow leaves the initial weights.
        sign: The sign of a∞ if it is certain; zero if β ends at zero without fitting the targets.
        certain: Whether the sign of a∞ is known without integrating the flow.
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

    initial = _initial_state(x, y, a, w, eta_a, eta_w)
    # Invalid members are not integrated.
    initial = initial._replace(certain=initial.certain | ~valid)
    start = (x, initial.output, initial.seen, initial.imbalance, initial.least, initial.certain)
    integrated = jax.lax.cond(
        jnp.all(initial.certain), lambda *_: initial.sign, integrated_sign, *map(jax.lax.stop_gradient, start)
    )
    end = _end(x, y, eta_a, eta_w, initial, jnp.where(initial.certain, initial.sign, integrated))
    kinds = nan_outside(known, end._asdict(), leading=True)
    batched = ("coefficients", "output_weight", "imbalance")
    return Interpolator(**kinds | nan_outside(valid, {name: kinds[name] for name in batched}, leading=True))


def _initial_state(x: Array, y: Array, a: Array, w: Array, eta_a: Array, eta_w: Array) -> _InitialState:
    ratio = (eta_w / eta_a) ** 0.25
    a, w = a * ratio, w / ratio[..., None]
    inverse = jnp.linalg.pinv(x)
    least = inverse @ y
    no_target = jnp.linalg.norm(x @ least) <= ROUNDING * jnp.linalg.norm(y)
    least = jnp.where(no_target, 0, least)
    seen = (w @ x.T) @ inverse.T
    seen_size, _ = polar(seen)
    imbalance = (a - seen_size) * (a + seen_size)

    # Whether the loss is below that of the zero map.
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
    return _InitialState(
        output=a,
        seen=seen,
        unseen=w - seen,
        least=least,
        imbalance=imbalance,
        moves=moves,
        sign=jnp.where(moves | (a != 0), sign, 0),
        certain=closed | keeps | ~moves,
    )


def _end(x: Array, y: Array, eta_a: Array, eta_w: Array, initial: _InitialState, sign: Array) -> Interpolator:
    (reach, _), fitted = polar(initial.least), x @ initial.least
    output = sign * jnp.sqrt(parts(reach, initial.imbalance, jnp.ones_like(initial.imbalance))[0])
    return Interpolator(
        coefficients=jnp.abs(sign)[..., None] * initial.least + output[..., None] * initial.unseen,
        output_weight=output / (eta_w / eta_a) ** 0.25,
        sign_changed=sign * initial.output < 0,
        stays=(sign == 0) & (reach > 0),
        moves=initial.moves,
        imbalance=initial.imbalance * jnp.sqrt(eta_a * eta_w),
        fitted_power=jnp.mean(fitted**2),
        unexplained=jnp.mean((y - fitted) ** 2),
    )
