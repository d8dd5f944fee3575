"""Learning speed and change in the NTK of an ensemble of wide two-layer networks, trained or solved exactly."""

from __future__ import annotations

from typing import NamedTuple

import jax
import numpy as np

from dynascope.errors import DivergenceError
from dynascope.flows.gradient_flow import GradientFlow, gradient_flow
from dynascope.flows.solvers.solver import Solver
from dynascope.studies.regimes.width_phases.networks import WideNetworks
from dynascope.tasks.task import Task
from dynascope.theory import LayerRates
from dynascope.theory.line_inputs import LineNetwork, line_data, line_trajectory, time_scale
from dynascope.theory.line_inputs.motion import LineTrajectory

__all__ = ["WideRun", "solved_on_line", "trained_on_line", "trained_to_half"]


class WideRun(NamedTuple):
    """Measurements of one ensemble, with an entry for each network.

    Attributes:
        kernel_change: Relative change ‖K − K₀‖/‖K₀‖ of the NTK by the end of training.
        learning_speed: Decay rate of the error on a line; on other tasks, inverse time to learn half of the task.
        loss: Final loss.
    """

    kernel_change: np.ndarray
    learning_speed: np.ndarray
    loss: np.ndarray


def solved_on_line(start: WideNetworks, task: Task) -> WideRun:
    """Solve linear networks on a line exactly, up to ten times the inverse of their mean speed 1/t_c."""
    times, path = _path(start, task)
    speed = np.log(np.abs(path.residual[:, 0] / path.residual[:, 1])) / times[1]
    change = start.kernel_change(path.first[:, -1], path.second[:, -1, :, None], task.inputs[:1])
    return WideRun(change, speed, np.asarray(path.residual[:, -1]) ** 2 / 2)


def trained_on_line(start: WideNetworks, task: Task) -> WideRun:
    """Train the networks of `solved_on_line` by gradient flow over the same times."""
    times, _ = _path(start, task)
    run, trained = gradient_flow(
        task,
        start.networks,
        GradientFlow(
            duration=float(times[-1]), learning_rate=start.rates, solver=Solver(relative_tolerance=1e-9), save=times
        ),
        return_networks=True,
    )
    loss = run["loss"].to_numpy()
    speed = np.log(loss[:, 0] / loss[:, 1]) / (2 * times[1])
    return WideRun(start.kernel_change(trained.first, trained.second, task.inputs[:1]), speed, loss[:, -1])


def trained_to_half(start: WideNetworks, task: Task, compared: int, relative_tolerance: float, *, name: str) -> WideRun:
    """Train by gradient flow on any task until the loss is half of that of the zero function.

    Args:
        start: Initial networks.
        task: The task.
        compared: Number of inputs on which NTKs are compared.
        relative_tolerance: Relative tolerance of the solver.
        name: Name of the networks for error messages.

    Raises:
        DivergenceError: A network does not learn half of the task.
    """
    kernel = start.kernels(*start.layers(), task.inputs)
    slowest = np.sqrt(start.rates["first"] * start.rates["second"])
    rate = max(float(np.mean(np.trace(kernel, axis1=1, axis2=2))) / task.samples, slowest)
    run, trained = gradient_flow(
        task,
        start.networks,
        GradientFlow(
            duration=1e5 / rate,
            learning_rate=start.rates,
            solver=Solver(relative_tolerance=relative_tolerance),
            save=2,
            loss_target=task.target_power / 4,
        ),
        return_networks=True,
    )
    if not np.all(run["stop_reason"] == "loss_target"):
        raise DivergenceError(
            f"the network {name} did not learn half of {task.name}",
            time=float(run["stop_time"].max()),
            remedy="choose larger scaling parameters",
        )
    change = start.kernel_change(trained.first, trained.second, task.inputs[:compared])
    return WideRun(change, 1 / run["stop_time"].to_numpy(), run["loss"].to_numpy()[:, -1])


def _path(start: WideNetworks, task: Task) -> tuple[np.ndarray, LineTrajectory]:
    """The times 0, 2 and 10 in units of the inverse mean speed, and the exact trajectory at these times."""
    data = line_data(task.inputs, task.targets)
    first, second = start.layers()
    network = LineNetwork(first, second[..., 0], rates=LayerRates(**start.rates))
    speeds = 1 / np.asarray(time_scale(network, data).time)
    times = np.array([0.0, 2.0, 10.0]) / np.mean(speeds)
    return times, jax.device_get(line_trajectory(network, data, times))
