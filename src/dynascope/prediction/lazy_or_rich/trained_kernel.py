"""Brief training of a network, and the movement of its NTK and activation patterns."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np
from jaxtyping import Bool, Float
from scipy.integrate import RK23
from scipy.optimize import brentq

from dynascope.prediction.lazy_or_rich.labels import FITTED, UNSTABLE, Movement
from dynascope.probes.kernel import kernel_distance

__all__ = ["STEPS", "KernelMovement", "TrainableNetwork", "kernel_movement"]

STEPS = {"flow": 3000, "descent": 10_000}  # most steps by default
_END = 1e-3  # fraction of the initial loss at which training ends
_FLOOR = 0.01  # fraction of the initial loss below which the final loss counts as zero
_TOLERANCE = 1e-4  # relative tolerance of a gradient flow
_SPACING = 0.02  # fraction of the initial loss between kept weights
_FALLING = 0.05  # fraction of the removed loss in the second half of the steps above which the loss still falls
_TINY = 1e-6  # fraction of the initial loss that must be removed


@runtime_checkable
class TrainableNetwork(Protocol):
    """A network of either framework, as functions of the vector θ of all its weights in float64.

    Attributes:
        start: θ₀.
        layers: The number of the layer of each weight, shape (P,); None if the layers are unknown.
    """

    start: Float[np.ndarray, " P"]
    layers: np.ndarray | None

    def outputs(self, weights: Float[np.ndarray, " P"]) -> Float[np.ndarray, "n c"]:
        """Compute the outputs on all samples."""
        ...

    def gradient(self, weights: Float[np.ndarray, " P"], targets: Any) -> tuple[float, Float[np.ndarray, " P"]]:
        """Compute the loss on all samples and its gradient."""
        ...

    def kernel(self, weights: Float[np.ndarray, " P"], rates: Float[np.ndarray, " P"] | None) -> Any:
        """Compute the NTK J diag(η) Jᵀ on a subset of the samples."""
        ...

    def patterns(self, weights: Float[np.ndarray, " P"]) -> Bool[np.ndarray, "m neurons"] | None:
        """Compute which neurons are active on a subset of the samples; None if this is unknown."""
        ...


class KernelMovement(NamedTuple):
    """A measured training run.

    Attributes:
        movement: Kernel distances and growth of the loss.
        flips: Fraction of activation patterns that have changed when 90 % of the loss is gone; None if unknown.
        removed: Fraction of the initial loss that training removes.
        steps: Number of steps.
        out_of_time: Whether the time limit ended training.
    """

    movement: Movement
    flips: float | None
    removed: float
    steps: int
    out_of_time: bool


@dataclasses.dataclass
class _Run:
    """A training run, with the weights at some losses.

    Attributes:
        losses: The loss after each step, and the initial loss.
        kept: Pairs of a loss and the weights at this loss, in decreasing order of the loss.
        final: The weights at the end.
        out_of_time: Whether the time limit ended the run.
    """

    losses: list[float]
    kept: list[tuple[float, Float[np.ndarray, " P"]]]
    final: Float[np.ndarray, " P"]
    out_of_time: bool = False

    def at(self, loss: float) -> Float[np.ndarray, " P"] | None:
        """Return the first kept weights whose loss is at most the given one."""
        return next((weights for kept, weights in self.kept if kept <= loss), None)


def kernel_movement(
    network: TrainableNetwork,
    targets: Any,
    *,
    rates: Float[np.ndarray, " P"] | None,
    is_flow: bool,
    steps: int,
    deadline: float,
    init_scale: float = 1.0,
) -> KernelMovement:
    """Train a network, and measure its NTK at the start, when 90 % of the loss is gone, and at the end.

    Training ends when the loss is 0.1 % of the initial loss, or after `steps` steps. If it ends above 1 %, the 90 % are
    those of the removed loss, not of the whole, to within 2 % of the initial loss. If less than 90 % is gone and the
    loss still falls, nothing is measured.

    Args:
        network: The network.
        targets: Targets of the loss.
        rates: Learning rate of each weight; None if all are one.
        is_flow: Gradient flow by a Runge-Kutta method (RK23) of `scipy.integrate`, or gradient descent.
        steps: Largest number of steps.
        deadline: End of the time limit, as `time.monotonic()`.
        init_scale: Factor on the initial weights.
    """
    initial = init_scale * network.start
    first, _ = network.gradient(initial, targets)
    path = (_flow_steps if is_flow else _descent_steps)(network, targets, rates, initial)
    run = _train(path, first, initial, steps, deadline)
    lowest = min(run.losses)
    floor = lowest if lowest > _FLOOR * first else 0.0
    # Below 90 %, the rest of the loss is a floor only if the second half of the steps hardly reduces it.
    halfway = min(run.losses[: len(run.losses) // 2 + 1])
    falls = halfway - lowest > _FALLING * (first - lowest)
    cut_short = floor > (1 - FITTED) * first and (run.out_of_time or falls)
    removes = lowest < (1 - _TINY) * first and not cut_short
    weights = run.at(floor + (1 - FITTED) * (first - floor)) if removes else None
    growth = max(run.losses) / first if first > 0 else 1.0
    growth = growth if np.isfinite(growth) else float("inf")
    fitted, final, flips = float("nan"), float("nan"), None
    if weights is not None and growth <= UNSTABLE:
        start = network.kernel(initial, rates)
        fitted = float(kernel_distance(start, network.kernel(weights, rates)))
        final = float(kernel_distance(start, network.kernel(run.final, rates)))
        before, after = network.patterns(initial), network.patterns(weights)
        flips = None if before is None or after is None else float(np.mean(before != after))
    removed = 1 - lowest / first if first > 0 else 0.0
    return KernelMovement(Movement(fitted, final, growth), flips, removed, len(run.losses) - 1, run.out_of_time)


class _Step(NamedTuple):
    """Weights and loss after a step; `at` finds the weights during the step at which the loss reaches a value."""

    weights: Float[np.ndarray, " P"]
    loss: float
    at: Callable[[float], Float[np.ndarray, " P"]]


def _train(path: Iterator[_Step], first: float, start: Any, steps: int, deadline: float) -> _Run:
    run = _Run([first], [(first, start)], start)
    target = (1 - FITTED) * first
    for number, step in enumerate(path):
        before = min(run.losses)
        run.losses.append(step.loss)
        run.final = step.weights
        if step.loss <= target < before:
            run.kept.append((target, step.at(target)))
        elif step.loss < run.kept[-1][0] - _SPACING * first:
            run.kept.append((step.loss, step.weights))
        run.out_of_time = time.monotonic() > deadline
        diverged = not np.isfinite(step.loss) or step.loss > UNSTABLE * first
        if diverged or step.loss <= _END * first or number + 1 >= steps or run.out_of_time:
            break
    return run


def _descent_steps(network: TrainableNetwork, targets: Any, rates: Any, initial: Any) -> Iterator[_Step]:
    weights, (_, gradient) = initial, network.gradient(initial, targets)
    with np.errstate(over="ignore", invalid="ignore"):
        while True:
            weights = weights - rates * gradient
            loss, gradient = network.gradient(weights, targets)
            yield _Step(weights, loss, lambda _, reached=weights: reached)


def _flow_steps(network: TrainableNetwork, targets: Any, rates: Any, initial: Any) -> Iterator[_Step]:
    speed = 1.0 if rates is None else rates
    latest = 0.0

    def velocity(_: float, weights: Float[np.ndarray, " P"]) -> Float[np.ndarray, " P"]:
        nonlocal latest
        latest, gradient = network.gradient(weights, targets)
        return -speed * gradient

    smallest = _TOLERANCE * float(np.sqrt(np.mean(initial**2))) or _TOLERANCE
    solver = RK23(velocity, 0.0, initial, np.inf, rtol=_TOLERANCE, atol=_TOLERANCE * smallest)
    while solver.status == "running":
        solver.step()
        # The last evaluation of an accepted step is at its end.
        yield _Step(solver.y, latest, lambda loss: _crossing(network, targets, solver, loss))


def _crossing(network: TrainableNetwork, targets: Any, solver: RK23, loss: float) -> Float[np.ndarray, " P"]:
    path = solver.dense_output()
    times = float(solver.t_old or 0.0), float(solver.t)

    def excess(t: float) -> float:
        return network.gradient(path(t), targets)[0] - loss

    if excess(times[0]) <= 0 or excess(times[1]) >= 0:
        return solver.y
    return path(brentq(excess, *times, xtol=1e-3 * (times[1] - times[0])))
