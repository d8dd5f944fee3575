"""Langevin dynamics of weights with batch noise, for many runs in parallel.

The dynamics are a continuous-time model of SGD with Gaussian noise. For SGD itself, use `Descent` with `batches`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any, Literal, NamedTuple

import diffrax
import jax
import jax.numpy as jnp
import numpy as np
from annotated_types import Interval
from jaxtyping import Float
from numpy.typing import ArrayLike

from dynascope.compilation import filter_jit
from dynascope.errors import DivergenceError
from dynascope.flows.counted_noise import noise_key, normal_noise
from dynascope.flows.solvers.langevin_steps import langevin_steps, require_langevin_solver
from dynascope.results.named_tuples import short_repr
from dynascope.validation import (
    checked,
    require,
    require_array,
    require_covariance,
    require_function,
    require_increasing,
    require_kind,
    require_shape,
)
from dynascope.validation.bounded import NonNegativeFloat, NonNegativeNumbers, PositiveFloat, PositiveInt

__all__ = ["LangevinRuns", "langevin"]

_LANES = 16384  # state variables of a block of runs, which fit into the cache of a core


class LangevinRuns(NamedTuple):
    """Trajectories of Langevin dynamics at the recorded times.

    Attributes:
        times: The recorded times t = ηk.
        position: Weights θ of each run, shape (times, runs, d).
        velocity: Velocity v of each run, shape (times, runs, d); zero for overdamped runs.
    """

    times: Float[np.ndarray, " times"]
    position: Float[np.ndarray, "times runs d"]
    velocity: Float[np.ndarray, "times runs d"]

    __repr__ = short_repr


@checked
def langevin(
    gradient: Callable[[Any], Any] | ArrayLike,
    start: ArrayLike,
    *,
    noise: ArrayLike,
    times: NonNegativeNumbers,
    time_step: PositiveFloat,
    learning_rate: PositiveFloat,
    momentum: Annotated[float, Interval(ge=0, lt=1)] = 0.0,
    weight_decay: NonNegativeFloat = 0.0,
    batch_size: PositiveInt = 1,
    runs: PositiveInt = 1,
    velocity: ArrayLike | None = None,
    dynamics: Literal["underdamped", "overdamped"] = "underdamped",
    solver: diffrax.AbstractSolver | None = None,
    seed: Annotated[int, Interval(ge=0, lt=2**32)] = 0,
) -> LangevinRuns:
    """Simulate the Langevin equation of SGD with momentum, or the overdamped limit of this equation.

        underdamped:  dv = −2/(η(1 + β)) [((1 − β) v + ∇L + λθ) dt + √(η/S) Σ^½ dW],   dθ = v dt
        overdamped:   dθ = −[(∇L + λθ) dt + √(η/S) Σ^½ dW]/(1 − β)

    The underdamped integrator is the BAOAB splitting (half kick, half drift, exact friction and noise, half drift, half
    kick). BAOAB is second order in the time step, and its stationary distribution of θ is exact for quadratic losses.
    The overdamped integrator averages the noise of two successive steps and is second order for stationary averages.
    States are in double precision, and random numbers are in single precision. All runs share one compiled `scan`,
    which is reused in later calls with the same gradient function.

    Both integrators are accurate for distributions over runs. For accurate individual paths, choose a diffrax `solver`:
    `QUICSORT` has strong order 3 and `ShARK` has strong order 1.5. With a diffrax solver, the seed determines the
    Brownian path. The path does not change when the time step is halved, so the difference between the two results
    estimates the error. A step of a diffrax solver is about 50 to 700 times slower than a step of the default
    integrators.

    For quadratic losses, `flows.ornstein_uhlenbeck` samples the exact distribution at arbitrary times.

    Args:
        gradient: A JAX function from weights (d,) to ∇L (d,), without weight decay; or the curvatures ρ of independent
            modes, shape (d,), for the gradient ρ θ.
        start: Initial weights θ of all runs, shape (d,), or of each run, shape (runs, d).
        noise: Covariance Σ of the gradients over samples, shape (d, d), or the variances of independent coordinates,
            shape (d,).
        times: Increasing times t = ηk ≥ 0 to record, rounded to whole steps.
        time_step: Time step Δt > 0. Choose Δt small compared with 1/ω = √(η(1 + β)/(2h)) for the largest curvature h
            or, for overdamped runs, with (1 − β)/h.
        learning_rate: Learning rate η > 0 of SGD.
        momentum: Momentum β, 0 ≤ β < 1.
        weight_decay: Weight decay λ ≥ 0.
        batch_size: Batch size S.
        runs: Number of runs.
        velocity: Initial velocity v of all runs, shape (d,), or of each run, shape (runs, d); zero by default.
        dynamics: "underdamped" or "overdamped".
        solver: A diffrax solver that replaces the default integrator: `ALIGN`, `ShOULD` or `QUICSORT` for underdamped
            runs; for overdamped runs, any solver of stochastic differential equations, such as `Heun`, `SRA1` or
            `ShARK`.
        seed: Seed of the noise.

    Raises:
        InputError: If an argument is outside its domain.
        DivergenceError: If a run diverges.

    References:
        Kunin, Sagastuy-Breña, Gillespie, Margalit, Tanaka, Ganguli, Yamins, arXiv:2107.09133; Leimkuhler, Matthews,
        arXiv:1203.5428. `QUICSORT`: Foster, Lyons, Oberhauser, arXiv:2101.03446. `ShARK`: Foster, dos Reis, Strange,
        arXiv:2210.17543. Brownian path: Jelinčič, Foster, Kidger, arXiv:2405.06464.

    Example:
        >>> chosen = {"noise": [0.1, 0.05], "learning_rate": 0.1, "runs": 500}
        >>> found = langevin([1.0, 0.5], [0.0, 0.0], times=[20.0, 40.0], time_step=0.05, **chosen)
        >>> print(found.position.shape, np.allclose(found.position[-1].var(axis=0), 0.005, rtol=0.3))
        (2, 500, 2) True
    """
    clock = np.asarray(times)
    require_shape("times", clock, (None,))
    require_increasing("times", clock)
    first = require_array("start", start, (None,), (runs, None))
    size = first.shape[-1]
    require(size > 0, "start is empty", argument="start", value=first.shape, remedy="give at least one weight")
    pushed = np.zeros(size) if velocity is None else velocity
    pushed = require_array("velocity", pushed, (size,), (runs, size))
    slope: Any = gradient
    if not callable(gradient):
        slope = jax.tree_util.Partial(_along_modes, require_array("gradient", gradient, (size,)))
    else:
        require_function("gradient", gradient)
    recorded = np.rint(clock / time_step)
    require(
        recorded.max() < 2**31 and (np.diff(recorded) > 0).all(),
        f"time_step is {time_step:g}, so the times, rounded to whole steps, are not increasing or exceed 2^31 steps",
        argument="time_step",
        value=time_step,
        remedy="choose a time step below the spacing of the times and above a billionth of the last time",
    )
    if solver is not None:
        require_langevin_solver(solver, dynamics)
    every = [np.broadcast_to(part, (runs, size)) for part in (first, pushed)]
    strength = _root_of(noise, size) * np.sqrt(learning_rate / batch_size)
    settings = np.array([time_step, learning_rate, momentum, weight_decay])
    counts = recorded.astype(np.int64)
    with jax.enable_x64(True):
        if solver is None:
            position, speed = _in_blocks(slope, every, strength, settings, counts, seed, dynamics)
        else:
            keys = jax.random.split(jax.random.key(seed), runs)
            found = langevin_steps(slope, *every, strength, settings, counts, keys, solver)
            position, speed = (np.asarray(part) for part in found)
    lost = ~np.isfinite(position).all(axis=(1, 2))
    if lost.any():
        raise DivergenceError(
            "one or more runs of Langevin dynamics diverged",
            time=float(recorded[lost][0] * time_step),
            remedy="choose a smaller time_step",
        )
    return LangevinRuns(recorded * time_step, position, speed)


def _in_blocks(
    slope: Any, every: list[np.ndarray], strength: Any, settings: Any, recorded: Any, seed: int, dynamics: str
) -> list[np.ndarray]:
    runs, size = every[0].shape
    block = max(1, min(runs, _LANES // size))
    blocks = -(-runs // block)
    place, push = (np.resize(part, (blocks, block, size)) for part in every)
    found = _simulated(slope, place, push, strength, settings, recorded, noise_key(seed), dynamics)
    shape = (len(recorded), blocks * block, size)
    return [np.moveaxis(np.asarray(part), 0, 1).reshape(shape)[:, :runs] for part in found]


def _along_modes(curvature: Any, points: Any) -> Any:
    return curvature * points


def _root_of(noise: ArrayLike, size: int) -> np.ndarray:
    """Compute Σ^½, shape (d,) for independent coordinates."""
    noise = require_array("noise", noise, (), (None,), (None, None))
    if noise.ndim < 2:
        variances = require_array("noise", noise, (size,))
        require_kind(NonNegativeNumbers, noise=variances)
        return np.sqrt(variances)
    covariance = require_array("noise", require_covariance("noise", noise), (size, size))
    values, directions = np.linalg.eigh(covariance)
    return directions * np.sqrt(np.maximum(values, 0)) @ directions.T


@filter_jit
def _simulated(
    gradient: Any, place: Any, push: Any, strength: Any, settings: Any, recorded: Any, key: Any, dynamics: str
) -> Any:
    step, rate, momentum, decay = settings
    slope = jax.vmap(gradient)
    spread = (lambda z: z * strength) if strength.ndim == 1 else (lambda z: z @ strength)
    shape = place.shape[1:]
    count = shape[0] * shape[1]
    half = -(-count // 2)
    lanes = jnp.arange(half, dtype=np.uint32)
    # Factor on the force, and the fraction of the velocity that remains after the friction of a step.
    kick = 2 / (rate * (1 + momentum))
    kept = jnp.exp(-kick * (1 - momentum) * step)
    stirred = kick * jnp.sqrt(-jnp.expm1(-2 * kick * (1 - momentum) * step) / (2 * kick * (1 - momentum)))

    def force(a: Any) -> Any:
        return slope(a) + decay * a

    def drawn(number: Any, block: Any) -> Any:
        return normal_noise((key[0], key[1] ^ block.astype(np.uint32)), number, lanes)

    def spread_out(pair: Any) -> Any:
        return spread(jnp.concatenate(pair)[:count].reshape(shape).astype(place.dtype))

    def underdamped(state: Any, pair: Any) -> Any:
        a, v, f = state
        v = v - step / 2 * kick * f
        a = a + step / 2 * v
        v = kept * v + stirred * spread_out(pair)
        a = a + step / 2 * v
        f = force(a)
        return a, v - step / 2 * kick * f, f

    def overdamped(state: Any, pair: Any) -> Any:
        a, v, before = state
        fresh = spread_out(pair)
        # Averaging the noise of two steps gives second order for the stationary distribution.
        moved = step * force(a) + jnp.sqrt(step) * (before + fresh) / 2
        return a - moved / (1 - momentum), v, fresh

    def of_block(part: Any) -> Any:
        block, a, v = part
        start = (a, v, force(a))
        if dynamics == "overdamped":
            start = (a, jnp.zeros_like(v), spread_out(drawn(jnp.uint32(0), block)))
        move = underdamped if dynamics == "underdamped" else overdamped

        def reach(carried: Any, target: Any) -> Any:
            def one(k: Any, held: Any) -> Any:
                state, pair = held
                # Draw the noise one step ahead; otherwise, the compiler recomputes it for each use.
                return move(state, pair), drawn(k + 2, block)

            number, held = carried
            held = jax.lax.fori_loop(number, target, one, held)
            return (target, held), held[0][:2]

        first = (jnp.zeros_like(recorded[0]), (start, drawn(jnp.uint32(1), block)))
        return jax.lax.scan(reach, first, recorded)[1]

    return jax.lax.map(of_block, (jnp.arange(len(place)), place, push))
