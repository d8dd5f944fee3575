"""Ten thousand trajectories of a single linear neuron at 200 times each, compared with an ODE solver.

The baseline is a typical implementation in diffrax: Tsit5 with adaptive steps and a relative tolerance of 1e-8, mapped
over the neurons and compiled. Both return output weight, weights and loss. Run `python benchmarks/single_neuron.py`.
"""

from __future__ import annotations

import statistics
import time

import diffrax
import harness
import jax
import jax.numpy as jnp
import numpy as np

from dynascope.theory.neuron import NeuronTrajectory, neuron_trajectory

NEURONS, TIMES, DIMENSION = 10_000, 200, 3
NANOSECONDS = 50.0  # target per neuron and time, on two cores


def main() -> None:
    with jax.enable_x64(True):
        draw = np.random.default_rng(0)
        outputs, weights = draw.normal(size=NEURONS), draw.normal(size=(NEURONS, DIMENSION))
        arguments = tuple(jnp.asarray(v) for v in (outputs, weights, [1.0, -0.5, 0.25], np.linspace(0, 10, TIMES)))
        exact, solved = jax.jit(lambda *start: neuron_trajectory(*start)), jax.jit(solve)

        def ours() -> NeuronTrajectory:
            return jax.block_until_ready(exact(*arguments))

        def theirs() -> NeuronTrajectory:
            return jax.block_until_ready(solved(*arguments))

        mine, other = harness.compare("single_neuron", ours, theirs, target=10.0, repeats=5)
        points = NEURONS * TIMES
        print(
            f"{nanoseconds(ours) / points:.1f} ns per neuron and time (target: under {NANOSECONDS:.0f}), "
            f"theirs {nanoseconds(theirs, repeats=3) / points:.0f} ns with an error of {error(mine, other):.0e}"
        )


def solve(outputs: jax.Array, weights: jax.Array, target: jax.Array, times: jax.Array) -> NeuronTrajectory:
    def velocity(t, state, arguments):
        a, w = state
        missing = a * w - target
        return -w @ missing, -a * missing

    def one(a: jax.Array, w: jax.Array) -> NeuronTrajectory:
        solution = diffrax.diffeqsolve(
            diffrax.ODETerm(velocity),
            diffrax.Tsit5(),
            times[0],
            times[-1],
            None,
            (a, w),
            saveat=diffrax.SaveAt(ts=times),
            stepsize_controller=diffrax.PIDController(rtol=1e-8, atol=1e-10),
            max_steps=10_000,
        )
        assert solution.ys is not None
        a, w = solution.ys
        return NeuronTrajectory(a, w, jnp.sum((a[:, None] * w - target) ** 2, axis=1) / 2)

    return jax.vmap(one)(outputs, weights)


def nanoseconds(run, repeats: int = 9) -> float:
    taken = []
    for _ in range(repeats):
        start = time.perf_counter()
        run()
        taken.append(time.perf_counter() - start)
    return 1e9 * statistics.median(taken)


def error(mine: NeuronTrajectory, other: NeuronTrajectory) -> float:
    return max(float(jnp.max(jnp.abs(one - two))) for one, two in zip(mine, other, strict=True))


if __name__ == "__main__":
    main()
