"""Training of scalar networks, and the growth of their weights."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from scipy.integrate import solve_ivp

from dynascope.errors import DivergenceError
from dynascope.flows.gradient_flow import GradientFlow, gradient_flow
from dynascope.flows.solvers.solver import Solver
from dynascope.networks.two_layer import TwoLayer
from dynascope.tasks.task import Task
from dynascope.theory.scalar_networks.scalar import Setting

__all__ = ["final_growth", "trained_curves"]

_REST = 30.0  # training time after a network has left its initialisation, in time constants
_ACCURACY = 1e-11


def final_growth(settings: Iterable[Setting]) -> list[float]:
    """The growth ln γ = ln Σ (a + b)² − ln Σ (a₀ + b₀)² of networks with positive targets after gradient flow.

    SciPy integrates the gradients, because compilation would take longer for networks of this size.

    Raises:
        DivergenceError: The integration failed.
    """
    found = []
    for setting in settings:
        target, a, b, power, divisor = (np.asarray(each, np.float64) for each in setting)

        def velocity(_: float, weights: np.ndarray, target=target, power=power, divisor=divisor) -> np.ndarray:
            a, b = np.split(weights, 2)
            missed = power * (a @ b / divisor - target) / divisor
            return -missed * np.concatenate([b, a])

        rate = 2 * power * max(target, np.sqrt(a @ a * (b @ b)) / divisor) / divisor
        start = np.concatenate([a, b])
        # A network needs additional time constants to leave a small initialisation.
        end = (_REST + np.log1p(target * divisor / (start @ start))) / rate
        smallest = _ACCURACY * np.abs(start).max()
        path = solve_ivp(velocity, (0.0, end), start, "DOP853", rtol=_ACCURACY, atol=smallest)
        if not path.success:
            raise DivergenceError(
                "the solver failed before the training of a scalar network ended",
                time=float(path.t[-1]),
                remedy="choose a target and a factor closer to one",
            )
        end_a, end_b = np.split(path.y[:, -1], 2)
        found.append(float(np.log(np.sum((end_a + end_b) ** 2) / np.sum((a + b) ** 2))))
    return found


def trained_curves(
    setting: Setting, inputs: np.ndarray, times: np.ndarray, learning_rate: float
) -> dict[str, np.ndarray]:
    """Curves of the network f(x) = (x/Z) Σ aᵢ bᵢ that learns y = S x by gradient flow on samples.

    Args:
        setting: Target, initial weights, second moment of the inputs and divisor of the output.
        inputs: Inputs, shape (n, 1), which are rescaled to this second moment.
        times: Increasing times; training ends at the last one.
        learning_rate: Learning rate η.

    Returns:
        `loss`, `relative_loss` (relative to the initial loss), `learned_fraction` of the target, `log_growth` of the
        weights.
    """
    target, a, b, power, divisor = map(np.asarray, setting)
    x = inputs * np.sqrt(power / np.mean(inputs**2))
    run = gradient_flow(
        Task(x / divisor, target * x, name="a line through the origin"),
        # Dividing the inputs is equivalent to dividing the outputs, and lets all divisors share one compiled program.
        TwoLayer(1, len(a), 1, activation="linear").with_neurons(np.stack([b, a], axis=1)),
        GradientFlow(
            duration=float(times[-1]),
            learning_rate=learning_rate,
            solver=Solver(relative_tolerance=1e-10),
            save=times,
            statistics=_STATISTICS,
        ),
    )
    loss, overlap, size = (run[name].to_numpy() for name in ("loss", "overlap", "size"))
    # The growing one of the sums Σ (a ± b)² is free of cancellation.
    grows = np.sign(target)
    growing = size + 2 * grows * np.sign(divisor) * overlap
    return {
        "loss": loss,
        "relative_loss": loss / loss[0],
        "learned_fraction": overlap / (divisor * target),
        "log_growth": grows * np.log(growing / growing[0]),
    }


def _overlap(network: TwoLayer) -> Any:
    return network.first[0] @ network.second[:, 0]


def _size(network: TwoLayer) -> Any:
    return (network.first**2).sum() + (network.second**2).sum()


_STATISTICS = {"overlap": (_overlap, ()), "size": (_size, ())}
