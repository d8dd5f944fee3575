"""Gradient flow of a two-layer leaky ReLU network, integrated from one change of the activation pattern to the next."""

from __future__ import annotations

import dataclasses
from typing import Any, Literal

import numpy as np
from annotated_types import IsFinite
from jaxtyping import Float, Int
from scipy.integrate import DOP853, DenseOutput
from scipy.optimize import brentq

from dynascope.errors import DivergenceError
from dynascope.results.named_tuples import short_repr
from dynascope.theory import LayerRates
from dynascope.validation import checked, require, require_increasing, require_known, require_shape
from dynascope.validation.bounded import Fraction, NonNegativeNumbers, PositiveFloat

__all__ = ["PatternFlow", "pattern_flow"]

_POINTS = np.linspace(0, 1, 5)  # points of a step at which pre-activations are checked for sign changes
_RESOLUTION = 1e-15  # absolute error of the time of a change; brentq adds a few rounding errors of the time
_MOST = 100_000  # steps
_NEAR = 1e-9  # velocity below this fraction of the sum of its terms' absolute values counts as zero


@dataclasses.dataclass(frozen=True, eq=False)
class PatternFlow:
    """Trajectory of a two-layer network up to the last time, or up to the time at which a neuron begins to slide.

    Attributes:
        time: The requested times that were reached, shape (times,).
        output_weights: a(t), shape (times, h).
        input_weights: W(t), shape (times, h, d).
        loss: L(t) = ½ E(f − y)², shape (times,).
        flip_time: Times at which an activation changed, shape (flips,).
        flip_neuron: The neuron whose activation changed, shape (flips,).
        flip_sample: The sample on which it changed, shape (flips,).
        flip_loss: The loss at these times, shape (flips,).
        status: "complete" or "sliding". In the second case, the flow after the last flip follows the boundary w·x = 0,
            which no pattern describes, so the integration stops there.
    """

    time: Float[np.ndarray, " times"]
    output_weights: Float[np.ndarray, "times h"]
    input_weights: Float[np.ndarray, "times h d"]
    loss: Float[np.ndarray, " times"]
    flip_time: Float[np.ndarray, " flips"]
    flip_neuron: Int[np.ndarray, " flips"]
    flip_sample: Int[np.ndarray, " flips"]
    flip_loss: Float[np.ndarray, " flips"]
    status: Literal["complete", "sliding"]

    __repr__ = short_repr


@checked
def pattern_flow(
    times: NonNegativeNumbers,
    inputs: IsFinite[Float[np.ndarray, "n d"]],
    targets: IsFinite[Float[np.ndarray, " n"]],
    output_weights: IsFinite[Float[np.ndarray, " h"]],
    input_weights: IsFinite[Float[np.ndarray, "h d"]],
    *,
    negative_slope: Fraction = 0.0,
    rates: LayerRates = LayerRates(),
    tolerance: PositiveFloat = 1e-11,
) -> PatternFlow:
    """Integrate gradient flow of f(x) = Σ a_i σ(w_i·x), σ(z) = max(z, γ z), and locate every change of its pattern.

        da_i/dt = −η₂ w_i·ξ_i, dw_i/dt = −η₁ a_i ξ_i, ξ_i = Xᵀ diag(c_i) (f − y)/n, c_i = σ'(X w_i)

    Each activation pattern c has a smooth flow. The integration stops at the first zero of a pre-activation, changes
    the pattern, and continues. If the new pattern pushes the neuron back, the neuron slides along the boundary, and the
    function returns the trajectory up to this time. A solver that does not locate the changes has a large error in the
    times of the changes, and chatters where a neuron slides.

    The cost of a step is of the order of h n d operations; the function is meant for small networks.

    Args:
        times: Increasing times t ≥ 0 at which the state is returned, shape (times,).
        inputs: X, shape (n, d).
        targets: y, shape (n,).
        output_weights: a(0), shape (h,).
        input_weights: W(0), shape (h, d), with no sample on a boundary w·x = 0.
        negative_slope: γ, from 0 (ReLU) to 1 (linear).
        rates: Learning rates η₁ of W and η₂ of a.
        tolerance: Relative tolerance of each step, and absolute tolerance relative to the largest initial weight.

    Returns:
        The trajectory and the changes of the pattern.

    Raises:
        InputError: If a value is not finite or out of range, shapes do not match, or a sample is on a boundary.
        DivergenceError: If the solver fails or needs more than 100,000 steps.

    References:
        Kunin, Raventós, Dominé, Chen, Klindt, Saxe, Ganguli, arXiv:2406.06158, section 4, for the setting.

    Example:
        >>> x, y = [[1.0, 0.0], [0.5, np.sqrt(3) / 2]], [1.0, 0.8]
        >>> flow = pattern_flow([0.0, 5.0], x, y, [0.3], [[0.229813, -0.192836]])
        >>> flow.flip_time.round(4).tolist(), flow.flip_sample.tolist(), flow.status
        ([0.6778], [1], 'complete')
    """
    network = _Network.checked(inputs, targets, output_weights, input_weights, negative_slope, rates)
    requested = np.atleast_1d(times)
    require_shape("times", requested, (..., None))
    require_shape("times", requested, (None,))
    require_increasing("times", requested)
    start = np.concatenate([output_weights, input_weights.ravel()])
    states, flips, status = _integrate(network, start, requested, tolerance)
    weights = [network.split(state) for state in states]
    time, neuron, sample, loss = zip(*flips, strict=True) if flips else ((), (), (), ())
    return PatternFlow(
        time=requested[: len(states)],
        output_weights=np.reshape([a for a, _ in weights], (-1, len(output_weights))),
        input_weights=np.reshape([w for _, w in weights], (-1, *input_weights.shape)),
        loss=np.array([network.loss(state) for state in states]),
        flip_time=np.array(time, float),
        flip_neuron=np.array(neuron, int),
        flip_sample=np.array(sample, int),
        flip_loss=np.array(loss, float),
        status=status,
    )


@dataclasses.dataclass(frozen=True)
class _Network:
    """The data and the constants of the network; a state is the vector of a and of the entries of W."""

    inputs: np.ndarray
    targets: np.ndarray
    slope: float
    rates: tuple[float, float]

    @classmethod
    def checked(
        cls, x: np.ndarray, y: np.ndarray, a: np.ndarray, w: np.ndarray, slope: float, rates: LayerRates
    ) -> _Network:
        require_known(**{f"rates.{name}": each for name, each in rates._asdict().items()})
        require_shape("inputs", x, (None, None))
        require_shape("targets", y, (len(x),))
        require_shape("output_weights", a, (None,))
        require_shape("input_weights", w, (len(a), x.shape[1]))
        first, second = (np.asarray(each, float) for each in rates)
        require_shape("rates.first", first, ())
        require_shape("rates.second", second, ())
        z = w @ x.T
        require(
            z.size > 0 and (z != 0).all(),
            "input_weights has a sample on a boundary w·x = 0, or is empty",
            argument="input_weights",
            value=0.0,
            remedy="choose weights that are orthogonal to no input",
        )
        return cls(x, y, slope, (first.item(), second.item()))

    def split(self, state: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return a, shape (..., h), and W, shape (..., h, d)."""
        neurons = state.shape[-1] // (1 + self.inputs.shape[1])
        return state[..., :neurons], state[..., neurons:].reshape(*state.shape[:-1], neurons, -1)

    def preactivations(self, state: np.ndarray) -> np.ndarray:
        """Return z = W xᵀ, shape (..., h, n)."""
        return self.split(state)[1] @ self.inputs.T

    def slopes(self, active: np.ndarray) -> np.ndarray:
        return np.where(active, 1.0, self.slope)

    def velocity(self, state: np.ndarray, slopes: np.ndarray) -> np.ndarray:
        """Return the velocity of a state within the pattern of the given slopes."""
        (a, w), (first, second) = self.split(state), self.rates
        residual = a @ (slopes * (w @ self.inputs.T)) - self.targets
        gradient = (slopes * residual) @ self.inputs / len(self.inputs)
        speeds = [second * np.sum(w * gradient, axis=1), (first * a[:, None] * gradient).ravel()]
        return -np.concatenate(speeds)

    def loss(self, state: np.ndarray) -> float:
        a, w = self.split(state)
        z = w @ self.inputs.T
        return float(np.mean((a @ np.where(z > 0, z, self.slope * z) - self.targets) ** 2) / 2)

    def leaves(self, state: np.ndarray, slopes: np.ndarray, neuron: int, sample: int, side: float) -> bool:
        """Whether the flow within a pattern moves a pre-activation from zero to its side, or keeps it there."""
        _, speed = self.split(self.velocity(state, slopes))
        terms = speed[neuron] * self.inputs[sample]
        return bool(side * terms.sum() >= -_NEAR * np.abs(terms).sum())


def _integrate(
    network: _Network, state: np.ndarray, times: np.ndarray, tolerance: float
) -> tuple[list[np.ndarray], list[tuple[float, int, int, float]], Literal["complete", "sliding"]]:
    """Return the states at the times, the changes of the pattern and whether the last time was reached."""
    states, flips, steps = [state] if times[0] == 0 else [], [], 0
    active, end = network.preactivations(state) > 0, float(times[-1])
    options = {"rtol": max(tolerance, 1e-13), "atol": tolerance * np.max(np.abs(state))}
    t = 0.0
    while t < end:
        slopes = network.slopes(active)
        solver = DOP853(lambda _, each, slopes=slopes: network.velocity(each, slopes), t, state, end, **options)
        crossing = None
        while crossing is None and solver.status == "running":
            problem, steps = solver.step(), steps + 1
            if solver.status == "failed" or steps > _MOST:
                raise DivergenceError(
                    f"the solver failed at time {solver.t:.6g}: {problem or f'more than {_MOST} steps'}",
                    time=float(solver.t),
                    remedy="shorten the time, or choose a larger tolerance",
                )
            path = solver.dense_output()
            crossing = _first_crossing(network, path, active)
            reached = solver.t if crossing is None else crossing[0]
            states += [path(each) for each in times[(times > solver.t_old) & (times <= reached)]]
        if crossing is None:
            break
        t, neuron, sample = crossing
        state = path(t)
        active = active.copy()
        active[neuron, sample] ^= True
        flips.append((t, neuron, sample, network.loss(state)))
        side = 1.0 if active[neuron, sample] else -1.0
        if not network.leaves(state, network.slopes(active), neuron, sample, side):
            return states, flips, "sliding"
    return states, flips, "complete"


def _first_crossing(network: _Network, path: DenseOutput, active: np.ndarray) -> tuple[float, int, int] | None:
    """Return the time, the neuron and the sample of the first zero of a pre-activation in a step, or None."""
    points = path.t_old + _POINTS * (path.t - path.t_old)
    side = np.where(active, 1.0, -1.0)
    heights = side * network.preactivations(path(points).T)
    # A ReLU neuron without an active sample no longer moves. Just after a change, rounding may leave a pre-activation
    # on its former side; only a change from the new side to the former one is a crossing.
    moving = (network.slope > 0) | active.any(axis=1)
    crossed = (heights[:-1] > 0) & (heights[1:] <= 0) & np.expand_dims(moving, 1)
    found = []
    for neuron, sample in np.argwhere(crossed.any(axis=0)).tolist():
        place = int(np.argmax(crossed[:, neuron, sample]))

        def height(t: float, neuron: int = neuron, sample: int = sample) -> float:
            return network.preactivations(path(t))[neuron, sample]

        time: Any = brentq(height, points[place], points[place + 1], xtol=_RESOLUTION)
        found.append((float(time), neuron, sample))
    return min(found, default=None)
