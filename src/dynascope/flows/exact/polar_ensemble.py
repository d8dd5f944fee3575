"""Gradient flows of many networks of homogeneous neurons in one compiled program."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import Float

from dynascope.compilation import filter_jit
from dynascope.errors import DivergenceError
from dynascope.flows.exact.polar_steps import PolarState, attempted_step, initial_state
from dynascope.flows.progress import track
from dynascope.protocols import SumOfNeurons
from dynascope.tasks.task import Task

__all__ = ["PolarRun", "polar_ensemble"]

_MEMORY = 2**30  # bytes of the runs that an accelerator integrates together
_COPIES = 16  # of the activations of all neurons on all samples, which a step keeps at once


class PolarRun(NamedTuple):
    """One run of an ensemble.

    Attributes:
        task: Inputs and targets.
        network: A sum of neurons of degree two or more without an output bias.
        times: Recorded times; the first is zero.
        tolerance: Error of a step, as in `polar_flow`.
    """

    task: Task
    network: SumOfNeurons
    times: Float[np.ndarray, " times"]
    tolerance: float


def polar_ensemble(
    runs: Sequence[PolarRun], *, max_steps: int, together: int | None = None
) -> Float[np.ndarray, "runs times neurons weights"]:
    """Solve the gradient flows of several networks by explicit steps in polar coordinates, as `polar_flow` does.

    Every run chooses its own steps. An accelerator integrates as many runs together as fit in its memory budget. A CPU
    integrates one after the other with the same compiled program, because its batched matrix products are slower.

    Args:
        runs: Runs with equal numbers of samples, inputs, outputs, neurons and times.
        max_steps: Maximum number of attempted steps of a run.
        together: Number of runs to integrate together; None for the number described above.

    Returns:
        The weights of each run at its times, one row per neuron.

    Raises:
        DivergenceError: If a run does not reach its last time within `max_steps`, or its step size underflows.

    Example:
        >>> from dynascope.networks import TwoLayer
        >>> task = Task(np.diag([1.0, 1.2]), [[1.5], [1.0]])
        >>> runs = [PolarRun(task, TwoLayer(2, 3, 1, seed=k), np.array([0.0, 9.0]), 1e-3) for k in range(2)]
        >>> polar_ensemble(runs, max_steps=1000).shape
        (2, 2, 3, 3)
    """
    size = min(together or _size(runs[0]), len(runs))
    parts = [runs[start : start + size] for start in range(0, len(runs), size)]
    found = []
    with jax.enable_x64(True):
        for part in track(parts, "groups of networks") if len(parts) > 1 else parts:
            filled = [*part, *[part[0]] * (size - len(part))]  # the last part has the shape of the others
            weights, reached = jax.device_get(_solved(runs[0].network, _stacked(filled), max_steps))
            for run, count in zip(part, reached, strict=False):
                _require_end(run, int(count), max_steps)
            found.append(weights[: len(part)])
    return np.concatenate(found)


def _size(run: PolarRun) -> int:
    """The number of runs to integrate together."""
    if jax.default_backend() == "cpu":
        return 1
    rows = np.asarray(run.network.neurons)
    activations = 8 * len(run.task.inputs) * len(rows)
    return max(_MEMORY // (_COPIES * activations + 8 * rows.size * len(run.times)), 1)


def _stacked(runs: Sequence[PolarRun]) -> dict[str, np.ndarray]:
    """The arrays of several runs, with the runs along the first axis."""
    rows = np.stack([np.asarray(run.network.neurons, np.float64) for run in runs])
    return {
        "inputs": np.stack([run.task.inputs for run in runs]),
        "targets": np.stack([run.task.targets for run in runs]),
        "rows": rows,
        "times": np.stack([run.times for run in runs]),
        "tolerance": np.array([run.tolerance for run in runs], float),
    }


def _require_end(run: PolarRun, reached: int, max_steps: int) -> None:
    if reached < len(run.times):
        time = float(run.times[reached - 1])
        raise DivergenceError(
            f"the flow did not reach time {run.times[reached]:.6g} within {max_steps} steps",
            time=time,
            remedy="raise max_steps, standardise the inputs, or shorten the duration",
        )


@filter_jit
def _solved(frame: Any, runs: dict[str, Any], max_steps: Any) -> tuple[Array, Array]:
    """The weights at all times, and the number of times that each run reached."""

    def solved(run: dict[str, Any]) -> tuple[Array, Array]:
        times, norms = run["times"], jnp.linalg.norm(run["rows"], axis=1)
        data = {"inputs": run["inputs"], "targets": run["targets"], "normalised": 0.0, "biased": 0.0}
        numbers = {"duration": times[-1], "tolerance": run["tolerance"]}
        bias = jnp.zeros(run["targets"].shape[1])
        state = initial_state(frame, data, run["rows"] / norms[:, None], jnp.log(norms), bias, numbers)

        def another(carry: Any) -> Any:
            state, saved, reached, count = carry
            state = attempted_step(frame, data, state, numbers | {"until": times[reached]})
            saved = saved.at[reached].set(_rows(state))
            return state, saved, reached + (state.time >= times[reached]), count + 1

        def unfinished(carry: Any) -> Array:
            state, _, reached, count = carry
            return (reached < len(times)) & (count < max_steps) & (state.step > 0)

        saved = jnp.zeros((len(times), *run["rows"].shape)).at[0].set(run["rows"])
        _, saved, reached, _ = jax.lax.while_loop(unfinished, another, (state, saved, 1, 0))
        return saved, reached

    return jax.vmap(solved)(runs)


def _rows(state: PolarState) -> Array:
    return jnp.exp(state.log_norms)[:, None] * state.directions
