"""Langevin dynamics of weights under the noise of batches, in continuous time, many runs at once.

It is a model of SGD with Gaussian noise, and not SGD, which is `Descent` with `batches`.
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

_LANES = 16384  # numbers of the state of runs that are followed together, which stay in a core's cache


class LangevinRuns(NamedTuple):
    """What runs of Langevin dynamics were at the recorded times.

    Attributes:
        times: The recorded times t = ηk.
        position: θ of each run, shape (times, runs, d).
        velocity: v of each run, of the same shape; zero for overdamped runs, which have none.
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
    """Follow dv = −2/(η(1 + β)) [((1 − β) v + ∇L + λθ) dt + √(η/S) Σ^½ dW], dθ = v dt, or its limit of strong damping.

    Underdamped runs move by a splitting of the equation (BAOAB: half a kick, half a drift, the exact law of friction
    and noise, half a drift, half a kick) of second order in the time step, whose stationary law of the position is
    exact for quadratic losses. Overdamped runs follow dθ = −[(∇L + λθ) dt + √(η/S) Σ^½ dW]/(1 − β), by the
    mean of the noise of two steps, of second order at stationarity too. The states have double precision, and the
    random numbers are standard normal ones of single precision. All runs are one compiled `scan`; pass the same
    function object as gradient to find the program again.

    That is for the law of many runs. Where each path is to be accurate, name a `solver` of diffrax: `QUICSORT` is of
    third order along paths and `ShARK` of order 1.5. A run then keeps its seed's path of Brownian motion when the time
    step is halved, so that the difference is the error; each step takes one to three hundred times as long.

    For quadratic losses `flows.ornstein_uhlenbeck` draws from the exact law at any distance of times.

    Args:
        gradient: A JAX function from weights (d,) to ∇L without weight decay, (d,); or the curvatures ρ of
            independent modes, shape (d,), of which the gradient is ρ θ.
        start: θ of all runs, shape (d,), or of each, (runs, d).
        noise: Σ, the covariance over samples of their gradients, shape (d, d), or the variances along coordinates
            that are independent, (d,).
        times: Times t = ηk ≥ 0 at which to record, increasing. They are rounded to whole steps.
        time_step: Δt > 0, small beside 1/ω = √(η(1 + β)/(2h)), and beside (1 − β)/h of overdamped runs.
        learning_rate: η > 0 of the SGD that is modelled.
        momentum: β ≥ 0, below one.
        weight_decay: λ ≥ 0.
        batch_size: S, the samples of a batch.
        runs: Number of runs.
        velocity: v of all runs at the start, shape (d,), or of each; zero if not given.
        dynamics: "underdamped", or "overdamped".
        solver: One of diffrax instead of these splittings: for underdamped runs `ALIGN`, `ShOULD` or `QUICSORT`, for
            overdamped ones any for stochastic equations, such as `Heun`, `SRA1` or `ShARK`.
        seed: Seed of the noise.

    Raises:
        InputError: An argument is outside its domain.
        DivergenceError: A run left the finite numbers.

    References:
        Kunin, Sagastuy-Breña, Gillespie, Margalit, Tanaka, Ganguli, Yamins, arXiv:2107.09133; Leimkuhler, Matthews,
        arXiv:1203.5428. Of `QUICSORT`: Foster, Lyons, Oberhauser, arXiv:2101.03446; of `ShARK`: Foster, dos Reis,
        Strange, arXiv:2210.17543; of the Brownian path: Jelinčič, Foster, Kidger, arXiv:2405.06464.

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
        f"time_step is {time_step:g}, in which the times are not whole numbers of steps, each more than the one before",
        argument="time_step",
        value=time_step,
        remedy="choose a step below the distances of the times, and not a billionth of the last",
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
            "runs of Langevin dynamics left the finite numbers",
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
    found = _followed(slope, place, push, strength, settings, recorded, noise_key(seed), dynamics)
    shape = (len(recorded), blocks * block, size)
    return [np.moveaxis(np.asarray(part), 0, 1).reshape(shape)[:, :runs] for part in found]


def _along_modes(curvature: Any, points: Any) -> Any:
    return curvature * points


def _root_of(noise: ArrayLike, size: int) -> np.ndarray:
    """Σ^½, of shape (d,) where coordinates are independent."""
    if np.ndim(noise) < 2:
        variances = require_array("noise", noise, (size,))
        require_kind(NonNegativeNumbers, noise=variances)
        return np.sqrt(variances)
    covariance = require_array("noise", require_covariance("noise", noise), (size, size))
    values, directions = np.linalg.eigh(covariance)
    return directions * np.sqrt(np.maximum(values, 0)) @ directions.T


@filter_jit
def _followed(
    gradient: Any, place: Any, push: Any, strength: Any, settings: Any, recorded: Any, key: Any, dynamics: str
) -> Any:
    step, rate, momentum, decay = settings
    slope = jax.vmap(gradient)
    spread = (lambda z: z * strength) if strength.ndim == 1 else (lambda z: z @ strength)
    shape = place.shape[1:]
    count = shape[0] * shape[1]
    half = -(-count // 2)
    lanes = jnp.arange(half, dtype=np.uint32)
    # The kick of a slope, and what friction leaves of a velocity in a step.
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
        # The mean of the noise of two steps makes the stationary law one of second order.
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
                # The next noise is drawn here, as the compiler would draw that of this step again for each of its uses.
                return move(state, pair), drawn(k + 2, block)

            number, held = carried
            held = jax.lax.fori_loop(number, target, one, held)
            return (target, held), held[0][:2]

        first = (jnp.zeros_like(recorded[0]), (start, drawn(jnp.uint32(1), block)))
        return jax.lax.scan(reach, first, recorded)[1]

    return jax.lax.map(of_block, (jnp.arange(len(place)), place, push))
