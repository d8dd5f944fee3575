"""Modular addition with p = 59 in the homogeneity-normalised flow, compared with a PyTorch loop.

A quadratic network with 64 neurons learns an encoding of four frequencies from scale 1e-6, in four jumps. dynascope
averages over all 3481 pairs in closed form and adapts its steps to the required accuracy. The loop is a typical
implementation: full-batch descent on all pairs in float64, at 90 % of the largest stable step. The gradient of each
neuron is divided by the norm of the neuron. Both sides cover the same gradient-flow time, by default until the plateau
after the third jump, which is about 2900 steps of the loop. `--jumps 4` runs the whole staircase and takes twice as
long. Run `python benchmarks/modular_addition.py`.
"""

from __future__ import annotations

import argparse

import harness
import jax
import numpy as np
import xarray as xr

from dynascope.flows import GradientFlow, Solver, gradient_flow
from dynascope.groups.encodings import encoding_from_frequencies
from dynascope.networks import TwoLayer
from dynascope.tasks.algebra.modular_addition import ModularAddition, modular_addition
from dynascope.theory.modular.addition import modular_addition_staircase

MODULUS, NEURONS, SCALE = 59, 64, 1e-6
STABILISED = Solver("stabilised", relative_tolerance=1e-2)
AMPLITUDES = {1: 0.8, 5: 0.5, 7: 0.32, 20: 0.2}
PHASES = {1: 0.4, 5: -0.9, 7: 1.7, 20: 2.5}


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    options.add_argument("--jumps", type=int, default=3, choices=range(1, len(AMPLITUDES) + 1))
    options.add_argument("--repeats", type=int, default=1)
    chosen = options.parse_args()
    torch = harness.torch_or_exit()
    encoding = encoding_from_frequencies(MODULUS, AMPLITUDES, PHASES)
    average, pairs, network = ModularAddition(encoding), modular_addition(encoding), start()
    staircase = modular_addition_staircase(encoding, scale=SCALE, neurons=network.neurons)
    # The middle of the plateau after the last jump.
    ends = np.append((staircase.times[1:] + staircase.times[:-1]) / 2, 1.1 * staircase.times[-1])
    duration = float(ends[chosen.jumps - 1])
    middles = (staircase.levels[1:] + staircase.levels[:-1])[: chosen.jumps] / 2

    def ours(solver: Solver = STABILISED, save: int = 2000) -> tuple[xr.Dataset, TwoLayer]:
        method = GradientFlow(duration=duration, normalised=True, solver=solver, save=save)
        return gradient_flow(average, network, method, scale=SCALE, return_networks=True)

    exact, trained = ours(Solver("explicit", relative_tolerance=1e-8), save=20_000)
    rate = 0.9 * largest_stable_step(average, trained)
    steps = int(np.ceil(duration / rate))
    x, y = torch.tensor(pairs.inputs), torch.tensor(pairs.targets)

    def theirs(steps: int = steps) -> xr.Dataset:
        first = torch.tensor(SCALE * network.first, requires_grad=True)
        second = torch.tensor(SCALE * network.second, requires_grad=True)
        losses = []
        for _ in range(steps):
            loss = 0.5 * (((x @ first) ** 2 @ second - y) ** 2).sum(dim=1).mean()
            loss.backward()
            with torch.no_grad():
                norms = ((first**2).sum(dim=0) + (second**2).sum(dim=1)).sqrt()
                first -= rate * first.grad / norms
                second -= rate * second.grad / norms[:, None]
            first.grad = second.grad = None
            losses.append(loss.item())
        return xr.Dataset({"loss": ("time", losses)}, {"time": rate * np.arange(steps)})

    threads = harness.use_best_threads(torch, lambda: theirs(30))
    print(
        f"time {duration:.4g}, {chosen.jumps} of {len(AMPLITUDES)} jumps; the loop takes {steps} steps of {rate:.3g}, "
        f"threads: {threads}"
    )
    mine, other = harness.compare("modular_addition", lambda: ours()[0], theirs, target=20.0, repeats=chosen.repeats)
    for name, record in (("ours", mine), ("theirs", other)):
        error = np.max(np.abs(passages(record, middles) / passages(exact, middles) - 1))
        print(f"largest relative error of a jump time, {name}: {error:.2%}")


def start() -> TwoLayer:
    """Return neurons of unit norm, each with random phases close to one frequency."""
    frequencies = np.array(list(AMPLITUDES))
    phases = np.random.default_rng(0).uniform(0, 2 * np.pi, (NEURONS, 3, len(frequencies)))
    angles = 2 * np.pi / MODULUS * np.multiply.outer(frequencies, np.arange(MODULUS))
    own = np.arange(NEURONS)[:, None] % len(frequencies) == np.arange(len(frequencies))
    shares = np.where(own, 1.0, 0.01)[:, None, :, None]
    rows = (np.cos(phases[..., None] + angles) * shares).sum(axis=2).reshape(NEURONS, -1)
    network = TwoLayer(2 * MODULUS, NEURONS, MODULUS, activation="quadratic")
    return network.with_neurons(rows / np.linalg.norm(rows, axis=1, keepdims=True))


def largest_stable_step(average: ModularAddition, network: TwoLayer) -> float:
    """Return two divided by the largest curvature in the metric of the flow, by power iteration."""
    with jax.enable_x64(True):
        rows = jax.numpy.asarray(network.neurons)
        root = jax.numpy.sum(rows**2, axis=1, keepdims=True) ** -0.25
        gradient = jax.grad(lambda rows: average.loss(network.with_neurons(rows)))

        @jax.jit
        def image(direction):
            return root * jax.jvp(gradient, (rows,), (root * direction,))[1]

        direction = jax.random.normal(jax.random.key(0), rows.shape, rows.dtype)
        for _ in range(300):
            direction = image(direction / jax.numpy.linalg.norm(direction))
        return 2 / float(jax.numpy.linalg.norm(direction))


def passages(record: xr.Dataset, levels: np.ndarray) -> np.ndarray:
    return np.interp(-levels, -record["loss"].to_numpy(), record["time"].to_numpy())


if __name__ == "__main__":
    main()
