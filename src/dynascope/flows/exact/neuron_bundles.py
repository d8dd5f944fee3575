"""Gradient flow of two-layer linear networks at any initialisation scale, by an exact change of variables."""

from __future__ import annotations

import functools
import itertools

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr
from jaxtyping import Array, Float, Int

from dynascope.arguments import require, require_array, require_count, require_positive
from dynascope.compilation import jit
from dynascope.flows.solvers.stepping import follow, require_correlation, resolving
from dynascope.record import make_record
from dynascope.tasks.task import Task

__all__ = ["linear_flow", "orthogonal_bundles"]


def linear_flow(
    task: Task,
    first: Float[np.ndarray, "d width"],
    second: Float[np.ndarray, "width c"],
    *,
    scale: float,
    duration: float,
    points: int = 4000,
    tolerance: float = 1e-9,
    max_steps: int = 10_000_000,
) -> xr.Dataset:
    """Train f(x) = x W₁ W₂ by gradient flow from scale·W₁, scale·W₂.

    The neurons θ = (input weights, output weights) all obey θ' = F θ, where F depends only on the residual Σyx − W Σxx
    of the learned map W. Rotating the neurons among themselves changes nothing, so they are kept as orthogonal
    bundles, each a unit direction with a log-norm of its own. A mode of size 1e-300 then keeps all its digits beside
    one of size 1, where the weights themselves would have mixed round-off of the large into the small.

    Args:
        task: Inputs and targets.
        first: W₁ at scale one, shape (d, width).
        second: W₂ at scale one, shape (width, c).
        scale: Factor on the initial weights.
        duration: Gradient-flow time at which to stop.
        points: How many times to keep.
        tolerance: Relative and absolute tolerance of each solver step.
        max_steps: Number of steps after which the flow is given up.

    Returns:
        Record with `loss` and `descent_rate` (−dL/dt) over `time`, and `mode_strength` over `time`, `mode`: u_kᵀ Wᵀ v_k
        along the singular vectors of Σyx, strongest first.

    Raises:
        InputError: Shapes that do not fit, initial weights that vanish, targets without correlation with the inputs, or
            a number that is not positive.
        DivergenceError: The solver could not go on, or `max_steps` was reached.

    Example:
        >>> task = Task(np.eye(2) * 2**0.5, np.diag([4.0, 1.0]) * 2**0.5)
        >>> curve = linear_flow(task, np.eye(2), np.eye(2), scale=1e-100, duration=300.0)
        >>> curve["mode_strength"].to_numpy()[-1].round(6)
        array([4., 1.])
    """
    first = require_array("first", first, (task.input_dimension, None))
    second = require_array("second", second, (first.shape[1], task.output_dimension))
    require_positive(scale=scale, duration=duration, tolerance=tolerance)
    require_count(points=points, max_steps=max_steps)
    require_correlation(task)
    # On its range Σxx becomes diagonal; weights outside see no data and never move.
    power, basis = np.linalg.eigh(task.input_moment)
    kept = power > 1e-12 * power[-1]
    cross = task.cross_moment @ basis[:, kept]
    left, values, rows = np.linalg.svd(cross, full_matrices=False)
    neurons = np.concatenate([basis[:, kept].T @ first, second.T])
    require(
        bool(np.any(neurons)),
        "the initial weights are zero",
        argument="first",
        value=0.0,
        remedy="start from random ones",
    )
    if neurons.shape[1] > len(neurons):
        # A rotation leaves as many bundles as a neuron has weights, and the others empty.
        neurons = np.asarray(np.linalg.qr(neurons.T, mode="r")).T
    norms = np.linalg.norm(neurons, axis=0)
    alive = norms > 0
    with jax.enable_x64(True):
        arguments = {
            "cross": cross,
            "power": power[kept],
            "target_power": np.asarray(task.target_power),
            "left": left,
            "right": rows.T,
        }
        start = (neurons[:, alive] / norms[alive], np.log(norms[alive]) + np.log(scale))
        record = follow(
            _growth,
            _statistics,
            orthogonal_bundles,
            orthogonal_bundles(start),
            arguments,
            duration=duration,
            # Eight such steps let the fastest direction gain at most e^8 on another before the next rotation.
            longest_step=1 / float(values[0]),
            restart_every=8,
            tolerance=tolerance,
            max_steps=max_steps,
        )
    record = resolving(record, points)
    return make_record(
        {
            "loss": (["time"], record["loss"]),
            "descent_rate": (["time"], record["descent_rate"]),
            "mode_strength": (["time", "mode"], record["mode_strength"]),
        },
        {"time": record["time"], "mode": np.arange(1, len(values) + 1)},
        attributes={"flow": "gradient flow", "variables": "neuron bundles", "scale": scale},
    )


def _learned_map(bundles, arguments):
    directions, log_norms = bundles
    inputs = len(arguments["power"])
    return (directions[inputs:] * jnp.exp(2 * log_norms)) @ directions[:inputs].T


def _pull(bundles, arguments):
    """F applied to each unit direction."""
    directions, _ = bundles
    inputs = len(arguments["power"])
    residual = arguments["cross"] - _learned_map(bundles, arguments) * arguments["power"]
    return jnp.concatenate([residual.T @ directions[inputs:], residual @ directions[:inputs]])


def _growth(_, bundles, arguments):
    directions, _ = bundles
    pull = _pull(bundles, arguments)
    rates = jnp.sum(directions * pull, axis=0)
    return pull - directions * rates, rates


def _statistics(_, bundles, arguments):
    learned = _learned_map(bundles, arguments)
    fitted = jnp.sum(learned * (arguments["cross"] - learned * arguments["power"] / 2))
    pull = _pull(bundles, arguments)
    return {
        "loss": jnp.maximum(arguments["target_power"] / 2 - fitted, 0.0),
        "descent_rate": jnp.sum(jnp.exp(2 * bundles[1]) * jnp.sum(pull**2, axis=0)),
        "mode_strength": jnp.sum(arguments["left"] * (learned @ arguments["right"]), axis=0),
    }


@functools.partial(jit, brief=False, static_argnames="sweeps")
def orthogonal_bundles(
    bundles: tuple[Float[Array, "parameters bundle"], Float[Array, " bundle"]], sweeps: int = 6
) -> tuple[Float[Array, "parameters bundle"], Float[Array, " bundle"]]:
    """Rotate bundles among themselves until their directions are orthogonal, keeping the digits of the smallest.

    One-sided Jacobi rotations, all disjoint pairs at once. For columns a and e^δ b with δ ≤ 0 the tangent of the angle
    is e^δ τ with τ = 2 a·b / (D + √(D² + 4 e^{2δ} (a·b)²)), D = 1 − e^{2δ}; the small direction changes by τ, so
    nothing underflows.

    Args:
        bundles: Unit columns, and their log-norms.
        sweeps: Passes over all pairs; convergence is quadratic.

    Returns:
        The rotated bundles; Σ e^{2·log-norm} · direction directionᵀ is unchanged.

    Example:
        >>> columns, log_norms = orthogonal_bundles((jnp.array([[1.0, 0.6], [0.0, 0.8]]), jnp.array([0.0, -300.0])))
        >>> columns.round(3).tolist(), log_norms.round(3).tolist()
        ([[1.0, 0.0], [0.0, 1.0]], [0.0, -300.22...])
    """
    directions, log_norms = bundles
    count = directions.shape[1]
    if count < 2:
        return bundles
    pairs = _disjoint_pairs(count)

    def rotate(round_number, state):
        directions, log_norms = state
        left, right = pairs[round_number % len(pairs)].T
        swap = log_norms[left] < log_norms[right]
        large, small = jnp.where(swap, right, left), jnp.where(swap, left, right)
        a, b = directions[:, large], directions[:, small]
        ratio = jnp.exp(log_norms[small] - log_norms[large])
        overlap = jnp.sum(a * b, axis=0)
        gap = 1 - ratio**2
        length = gap + jnp.sqrt(gap**2 + 4 * ratio**2 * overlap**2)
        tangent = jnp.where(length > 0, 2 * overlap / jnp.where(length > 0, length, 1.0), 0.0)
        cosine = 1 / jnp.sqrt(1 + (ratio * tangent) ** 2)
        a, b = cosine * (a + ratio**2 * tangent * b), cosine * (b - tangent * a)
        # A copy of another bundle leaves nothing, which must not become 0/0.
        norms = [jnp.maximum(jnp.linalg.norm(each, axis=0), jnp.finfo(each.dtype).tiny) for each in (a, b)]
        directions = directions.at[:, large].set(a / norms[0]).at[:, small].set(b / norms[1])
        log_norms = log_norms.at[large].add(jnp.log(norms[0])).at[small].add(jnp.log(norms[1]))
        return directions, log_norms

    return jax.lax.fori_loop(0, sweeps * len(pairs), rotate, (directions, log_norms))


def _disjoint_pairs(count: int) -> Int[Array, "round pair 2"]:
    """Rounds of a tournament in which every two columns meet once."""
    players = list(range(count + count % 2))
    rounds = []
    for _ in range(len(players) - 1):
        half = len(players) // 2
        meetings = itertools.zip_longest(players[:half], reversed(players[half:]))
        rounds.append([pair for pair in meetings if max(pair) < count])
        players = [players[0], players[-1], *players[1:-1]]
    return jnp.array(rounds)
