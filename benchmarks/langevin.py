"""Langevin dynamics of 20 000 runs with ten modes and 10 000 steps, compared with its random numbers and other solvers.

The first baseline is the same splitting scheme as a NumPy loop over steps, vectorised over runs and without temporary
arrays. The others are diffrax, mapped over runs, with Euler steps on a Brownian path that is drawn during the run, and
torchsde if it is installed. All states are in double precision. By default, dynascope draws noise in single precision
and the others in double precision; NumPy is also timed in single precision throughout. Baselines are timed on fewer
steps, and compared per step. Run `python benchmarks/langevin.py [steps]`.
"""

from __future__ import annotations

import importlib.util
import statistics
import sys
import time
from collections.abc import Callable
from typing import Any

import diffrax
import jax
import jax.numpy as jnp
import numpy as np

from dynascope.flows import langevin
from dynascope.flows.counted_noise import normal_noise

RUNS, MODES, STEPS, FEW = 20_000, 10, 10_000, 200
CURVATURE = np.arange(1, MODES + 1) ** -1.5
RATE, MOMENTUM, BATCH, STEP = 0.05, 0.9, 8, 0.02
KICK = 2 / (RATE * (1 + MOMENTUM))
KEPT = np.exp(-KICK * (1 - MOMENTUM) * STEP)
STRENGTH = np.sqrt(CURVATURE * RATE / BATCH)
STIRRED = KICK * STRENGTH * np.sqrt((1 - KEPT**2) / (2 * KICK * (1 - MOMENTUM)))


def main() -> None:
    steps = int(sys.argv[1]) if len(sys.argv) > 1 else STEPS
    ours = seconds(lambda: our_runs(steps))
    numbers = seconds(lambda: drawn(steps))
    each = 1e9 / (RUNS * MODES * steps)
    print(f"{steps} steps of {RUNS} runs of {MODES} modes: {ours:.2f} s, {ours * each:.2f} ns per mode and step")
    print(f"{'random numbers alone':<36} ours takes {ours / numbers:5.2f} times as long (target: at most 1.50)")
    others = {"NumPy, double": lambda: numpy_runs(np.float64), "NumPy, single": lambda: numpy_runs(np.float32)}
    others["diffrax"] = diffrax_runs
    if importlib.util.find_spec("torchsde"):
        others["torchsde"] = torchsde_runs
    else:
        print("torchsde is not installed, so it is skipped")
    for name, run in others.items():
        theirs = seconds(run) / FEW
        print(f"{name:<36} ours is {theirs / (ours / steps):5.2f} times as fast (target: at least 1.00)")


def seconds(run: Callable[[], Any], repeats: int = 3) -> float:
    """Return the median run time, without the first run, which compiles."""
    run()
    found = []
    for _ in range(repeats):
        start = time.perf_counter()
        run()
        found.append(time.perf_counter() - start)
    return statistics.median(found)


def our_runs(steps: int) -> np.ndarray:
    return langevin(
        CURVATURE,
        np.zeros(MODES),
        noise=CURVATURE,
        times=[STEP * steps],
        time_step=STEP,
        learning_rate=RATE,
        momentum=MOMENTUM,
        batch_size=BATCH,
        runs=RUNS,
    ).position


@jax.jit
def _sums(steps: Any) -> Any:
    lanes = jnp.arange(2048, dtype=np.uint32)

    def block(number: Any) -> Any:
        def add(k: Any, totals: Any) -> Any:
            pair = normal_noise((number, jnp.uint32(7)), k, lanes)
            return tuple(total + each.astype(total.dtype) for total, each in zip(totals, pair, strict=True))

        return jax.lax.fori_loop(0, steps, add, (jnp.zeros(2048),) * 2)

    return jax.lax.map(block, jnp.arange(-(-RUNS * MODES // 4096), dtype=np.uint32))


def drawn(steps: int) -> Any:
    """Draw as many random numbers as `our_runs`, and add them up so that all are computed."""
    with jax.enable_x64(True):
        return jax.block_until_ready(_sums(steps))


def numpy_runs(dtype: Any) -> np.ndarray:
    random = np.random.Generator(np.random.SFC64(0))
    a, v, f, z, part = np.zeros((5, RUNS, MODES), dtype)
    rho, stirred = CURVATURE.astype(dtype), STIRRED.astype(dtype)
    for _ in range(FEW):
        np.multiply(f, STEP / 2 * KICK, out=part)
        v -= part
        np.multiply(v, STEP / 2, out=part)
        a += part
        random.standard_normal(out=z, dtype=dtype)
        z *= stirred
        v *= KEPT
        v += z
        np.multiply(v, STEP / 2, out=part)
        a += part
        np.multiply(a, rho, out=f)
        np.multiply(f, STEP / 2 * KICK, out=part)
        v -= part
    return a


class _OnVelocity(diffrax.ControlTerm):
    def prod(self, vf: Any, control: Any) -> Any:
        return jnp.zeros(MODES), vf * control


@jax.jit
def _solved(keys: Any) -> Any:
    def one(key: Any) -> Any:
        path = diffrax.UnsafeBrownianPath((MODES,), key)
        drift = diffrax.ODETerm(lambda t, y, _: (y[1], -KICK * ((1 - MOMENTUM) * y[1] + CURVATURE * y[0])))
        pushed = _OnVelocity(lambda t, y, _: KICK * STRENGTH, path)
        terms = diffrax.MultiTerm(drift, pushed)
        start = (jnp.zeros(MODES), jnp.zeros(MODES))
        solution = diffrax.diffeqsolve(
            terms,
            diffrax.Euler(),
            0.0,
            STEP * FEW,
            STEP,
            start,
            saveat=diffrax.SaveAt(t1=True),
            adjoint=diffrax.ForwardMode(),
            max_steps=FEW + 2,
        )
        assert solution.ys is not None
        return solution.ys[0]

    return jax.vmap(one)(keys)


def diffrax_runs() -> Any:
    with jax.enable_x64(True):
        return jax.block_until_ready(_solved(jax.random.split(jax.random.key(0), RUNS)))


def torchsde_runs() -> Any:
    import torch  # not at the top, because both are optional
    import torchsde  # pyright: ignore[reportMissingImports]

    rho, strength = torch.tensor(CURVATURE), torch.tensor(KICK * STRENGTH)

    class Motion(torch.nn.Module):
        noise_type, sde_type = "diagonal", "ito"

        def f(self, t: Any, y: Any) -> Any:
            a, v = y[:, :MODES], y[:, MODES:]
            return torch.cat([v, -KICK * ((1 - MOMENTUM) * v + rho * a)], dim=1)

        def g(self, t: Any, y: Any) -> Any:
            return torch.cat([torch.zeros(RUNS, MODES), strength.expand(RUNS, MODES)], dim=1)

    with torch.no_grad():
        times, start = torch.tensor([0.0, STEP * FEW]), torch.zeros(RUNS, 2 * MODES, dtype=torch.float64)
        return torchsde.sdeint(Motion(), start, times, method="euler", dt=STEP)


if __name__ == "__main__":
    main()
