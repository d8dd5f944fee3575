"""Utilities of neurons: how fast each neuron grows, which dormant (small) neuron becomes active next, and when."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from typing import Annotated, Any, NamedTuple

from annotated_types import Ge

from dynascope.results.named_tuples import short_repr
from dynascope.validation import array_namespace, checked, holds, require, require_axes, require_finite_values
from dynascope.validation.bounded_scalars import PositiveFloat, PositiveInt

__all__ = ["NeuronUtility", "UtilitySpectrum", "output_utility", "two_layer_utility", "utility_spectrum"]


@dataclasses.dataclass(frozen=True)
class NeuronUtility:
    """Normalised utilities Û_i = E⟨f_i(x; θ_i/‖θ_i‖), r(x)⟩ of neurons over the samples seen so far.

    Utilities of several batches can be added: `functools.reduce(operator.add, batches)`.

    Attributes:
        total: Sum over samples of ⟨f_i(x; θ_i/‖θ_i‖), r(x)⟩, shape (h,); zero for a neuron with zero weights.
        samples: Number of samples.
        norms: ‖θ_i‖, shape (h,).
        degree: κ, the degree of homogeneity of a neuron in all its weights.
    """

    total: Any
    samples: PositiveInt
    norms: Any
    degree: Annotated[int, Ge(2)]

    __repr__ = short_repr

    def __add__(self, other: NeuronUtility) -> NeuronUtility:
        """Add the utility of another batch for the same neurons."""
        same = self.norms.shape == other.norms.shape and self.degree == other.degree
        require(
            same and holds(array_namespace(self.norms).all(self.norms == other.norms)),
            "the two batches were measured on different neurons",
            argument="other",
            value=tuple(other.norms.shape),
            remedy="add batches measured at the same checkpoint",
        )
        return dataclasses.replace(self, total=self.total + other.total, samples=self.samples + other.samples)

    @property
    def mean(self) -> Any:
        """Û, shape (h,)."""
        return self.total / self.samples


class UtilitySpectrum(NamedTuple):
    """Utilities at a checkpoint, and the growth that they predict.

    Attributes:
        utility: Û over `neuron`.
        growth_rate: κÛ over `neuron`; equal to d log‖θ‖/dt for κ = 2 and in the normalised flow.
        norm: ‖θ‖ over `neuron`.
        dormant: Whether the norm of each `neuron` is below the threshold.
        activation_time: Time until each `neuron` becomes active; zero for active neurons, infinite for neurons that do
            not grow or whose norm underflows to zero.
        next_neuron: Index of the dormant neuron with the earliest activation time; −1 if none grows.
        next_time: Activation time of that neuron; infinite if none grows.
    """

    utility: Annotated[Any, "neuron"]
    growth_rate: Annotated[Any, "neuron"]
    norm: Annotated[Any, "neuron"]
    dormant: Annotated[Any, "neuron"]
    activation_time: Annotated[Any, "neuron"]
    next_neuron: Annotated[Any, ""]
    next_time: Annotated[Any, ""]

    __repr__ = short_repr


@checked
def two_layer_utility(
    inputs: Any,
    residuals: Any,
    first: Any,
    second: Any,
    *,
    activation: Callable[[Any], Any],
    degree: Annotated[int, Ge(2)],
) -> NeuronUtility:
    """Compute the utilities of the neurons of f(x) = σ(x W₁) W₂.

        Û_i = E[σ(x·w_i) ⟨v_i, r(x)⟩]  at unit ‖(w_i, v_i)‖

    Cost: about 2nh(d + c) operations and memory for nh numbers.

    Args:
        inputs: x, shape (n, d). All arrays must come from one library: NumPy, JAX or PyTorch.
        residuals: r = y − f(x), shape (n, c).
        first: W₁, shape (d, h).
        second: W₂, shape (h, c).
        activation: σ, positively homogeneous of degree κ − 1, as a function of arrays of that library.
        degree: κ ≥ 2, the degree of a neuron in all its weights: 2 for ReLU or linear, 3 for quadratic.

    Raises:
        InputError: If shapes do not match, the activation is not homogeneous of degree κ − 1, values are not finite
            (neither is checked under JAX tracing), or the degree is below two.

    Example:
        >>> import numpy as np
        >>> relu = lambda z: np.maximum(z, 0)
        >>> x, r = np.eye(2) * 2**0.5, np.array([[2.0], [-1.0]])
        >>> utility = two_layer_utility(x, r, 1e-6 * np.eye(2), 1e-6 * np.ones((2, 1)), activation=relu, degree=2)
        >>> utility.mean.round(4), utility.norms
        (array([ 0.7071, -0.3536]), array([1.41421356e-06, 1.41421356e-06]))
    """
    (n, d), (d_first, h) = require_axes("inputs", inputs, 2), require_axes("first", first, 2)
    (n_residuals, c), (h_second, c_second) = require_axes("residuals", residuals, 2), require_axes("second", second, 2)
    require(
        (d_first, h_second, n_residuals, c_second) == (d, h, n, c),
        f"the shapes of inputs, {(n, d)}, residuals, {(n_residuals, c)}, first, {(d_first, h)}, and second, "
        f"{(h_second, c_second)}, do not match",
        argument="residuals",
        value=(n_residuals, c),
        remedy="give arrays of shapes (n, d), (n, c), (d, h) and (h, c)",
    )
    for name, each in {"inputs": inputs, "residuals": residuals, "first": first, "second": second}.items():
        require_finite_values(name, each)
    xp = array_namespace(first=first, second=second, inputs=inputs, residuals=residuals)
    one = xp.ones_like(first[:1, :1])
    for z in (one, -one):
        require(
            holds(xp.abs(activation(2 * z) - 2 ** (degree - 1) * activation(z)) <= 1e-5 * 2**degree),
            f"the activation is not homogeneous of degree {degree - 1}",
            argument="activation",
            value=getattr(activation, "__name__", type(activation).__name__),
            remedy="give a power or a rectified power as activation, and the exponent plus one as degree",
        )
    norms = _norms(first, second)
    units = _safe(norms)
    sizes = activation(inputs @ (first / units)).T @ residuals
    return _finite(NeuronUtility(_sum(sizes * (second / units[:, None]), 1), n, norms, degree))


@checked
def output_utility(outputs: Any, residuals: Any, norms: Any, *, degree: Annotated[int, Ge(2)]) -> NeuronUtility:
    """Compute the utilities of any homogeneous neurons from their outputs.

        Û_i = E⟨f_i(x), r(x)⟩ / ‖θ_i‖^κ

    Cost: 2nhc operations and memory for nhc numbers. If the outputs of a neuron underflow, evaluate it at ‖θ_i‖ = 1 and
    set its norm to one; outputs are proportional to ‖θ_i‖^κ.

    Args:
        outputs: f_i(x), shape (n, h, c). All arrays must come from one library: NumPy, JAX or PyTorch.
        residuals: r = y − Σ_i f_i(x), shape (n, c).
        norms: ‖θ_i‖ over all weights of neuron i, shape (h,).
        degree: κ ≥ 2, the degree of a neuron in all its weights.

    Raises:
        InputError: If shapes do not match, values are not finite (not checked under JAX tracing), or the degree is
            below two.

    Example:
        >>> import numpy as np
        >>> output_utility(np.full((4, 1, 1), 0.5), np.ones((4, 1)), np.full(1, 0.1), degree=2).mean
        array([50.])
    """
    n, h, c = require_axes("outputs", outputs, 3)
    require(
        require_axes("residuals", residuals, 2) == (n, c) and require_axes("norms", norms, 1) == (h,),
        f"the shapes of outputs, {(n, h, c)}, residuals, {tuple(residuals.shape)}, and norms, {tuple(norms.shape)}, "
        "do not match",
        argument="outputs",
        value=(n, h, c),
        remedy="give arrays of shapes (n, h, c), (n, c) and (h,)",
    )
    for name, each in {"outputs": outputs, "residuals": residuals, "norms": norms}.items():
        require_finite_values(name, each)
    array_namespace(outputs=outputs, residuals=residuals, norms=norms)
    total = _sum(_sum(outputs * residuals[:, None, :], 2), 0)
    return _finite(NeuronUtility(total / _safe(norms) ** degree, n, norms, degree))


@checked
def utility_spectrum(
    utility: NeuronUtility, *, threshold: PositiveFloat = 0.1, normalised: bool = False
) -> UtilitySpectrum:
    """Predict the growth of each neuron from the utilities at a checkpoint.

    A neuron is dormant if its norm is below the threshold c; a dormant neuron does not affect the residual. If its
    direction is also constant, then κÛ is constant and the norm reaches c after the time

        log(c/‖θ‖) / (κÛ)   for κ = 2 and in the normalised flow,      (‖θ‖^(2−κ) − c^(2−κ)) / ((κ − 2) κÛ)   otherwise.

    If the direction still turns towards a maximum of the utility, the time is shorter, and much shorter for degrees
    above two; `alternating.predict_next_activation` integrates this rotation. Under gradient flow, the norm of every
    neuron, dormant or active, obeys d‖θ‖/dt = ‖θ‖^(κ−1) κÛ exactly at all times.

    Cost: about 30 operations and memory for a dozen numbers per neuron.

    Args:
        utility: The result of `two_layer_utility` or `output_utility` for the samples over which the loss is averaged.
        threshold: c > 0, a norm well below the norm at which a neuron affects the residual.
        normalised: Whether the run follows the homogeneity-normalised flow, in which neuron i has the learning rate
            ‖θ_i‖^(2−κ).

    Raises:
        InputError: If the threshold is not positive.

    References:
        Alternating Gradient Flows: A Theory of Feature Learning in Two-layer Neural Networks, arXiv:2506.06489.

    Example:
        >>> import numpy as np
        >>> neurons = NeuronUtility(np.array([0.5, 1.0, 0.2]), 1, np.array([1e-3, 1e-6, 1.0]), 2)
        >>> spectrum = utility_spectrum(neurons, threshold=0.1)
        >>> spectrum.activation_time.round(2), int(spectrum.next_neuron)
        (array([4.61, 5.76, 0.  ]), 0)
    """
    xp, norms, degree = array_namespace(utility.total), utility.norms, utility.degree
    growth = degree * utility.mean
    if degree == 2 or normalised:
        distance = math.log(threshold) - xp.log(_safe(norms))
    else:
        distance = (_safe(norms) ** (2 - degree) - threshold ** (2 - degree)) / (degree - 2)
    dormant, growing = norms < threshold, (growth > 0) & (norms > 0)
    never = xp.full_like(growth, math.inf)
    dormant_times = xp.where(dormant & growing, distance / xp.where(growing, growth, xp.ones_like(growth)), never)
    times = xp.where(dormant, dormant_times, xp.zeros_like(growth))
    first = xp.argmin(dormant_times)
    earliest = xp.min(dormant_times)
    return UtilitySpectrum(
        utility=utility.mean,
        growth_rate=growth,
        norm=norms,
        dormant=dormant,
        activation_time=times,
        next_neuron=xp.where(earliest < math.inf, first, xp.full_like(first, -1)),
        next_time=earliest,
    )


def _norms(first: Any, second: Any) -> Any:
    """Compute ‖(w_i, v_i)‖ without underflow in the squares of small numbers."""
    xp = array_namespace(first)
    largest = xp.maximum(xp.max(xp.abs(first), axis=0), xp.max(xp.abs(second), axis=1))
    units = _safe(largest)
    return largest * xp.sqrt(_sum((first / units) ** 2, 0) + _sum((second / units[:, None]) ** 2, 1))


def _safe(norms: Any) -> Any:
    """Replace zero norms with one, for use as a divisor."""
    xp = array_namespace(norms)
    return xp.where(norms > 0, norms, xp.ones_like(norms))


def _sum(values: Any, axis: int) -> Any:
    return array_namespace(values).sum(values, axis=axis)


def _finite(utility: NeuronUtility) -> NeuronUtility:
    xp = array_namespace(utility.total)
    require(
        holds(xp.all(xp.isfinite(utility.total)) & xp.all(xp.isfinite(utility.norms))),
        f"the utilities overflow {utility.total.dtype}",
        argument="residuals",
        remedy="rescale the residuals or weights",
    )
    return utility
