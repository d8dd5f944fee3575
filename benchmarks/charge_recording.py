"""Cost of recording all conserved charges, compared with the same training without them.

A residual network with eighteen layers learns labelled images of 32 × 32 pixels, with batch normalisation in training
mode. A small transformer learns rows of tokens. Both use momentum and batches of 128 samples in float32. All charges
that `find_symmetries` finds are recorded, including those that only the ε of a normalisation breaks. The target is less
than 3 % of a step. The time and memory of `find_symmetries` are also printed. Run
`python benchmarks/charge_recording.py`; `--small` runs small sizes, `--turns` sets the number of turns, and names
select networks.

Cost: for the residual network, `find_symmetries` took half a minute and 1.4 GiB, and a step 3.6 s, on one processor.
The first ratio therefore takes two minutes, and longer on a busy machine. Before the first turn, the benchmark prints
an upper bound on its duration, and after each turn the ratios so far. `ResNet-18 --turns 1` is the shortest full-size
run.

Other work on the machine can add more to the wall time than the measured effect, so CPU time is also printed.
"""

from __future__ import annotations

import argparse
import resource
import statistics
import time
import types
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import equinox as eqx
import jax
import numpy as np
import optax

from dynascope.networks import ResNet18, Transformer
from dynascope.networks.batch_normalisation import trained_weights
from dynascope.symmetry import Charge, find_symmetries
from dynascope.tasks import Labelled
from dynascope.training import Descent, charge_statistics, descend

TARGET = 0.03
MOMENTUM, RATE, CLASSES = 0.9, 0.01, 10
ALONE = 5  # repetitions per turn


class Size(NamedTuple):
    """Sizes of data and networks, and the length of the training.

    Attributes:
        image: Pixels per side.
        channels: Channels of the first stage of the residual network.
        tokens: Tokens per input of the transformer, and number of different tokens.
        width: Width of the transformer, with four heads.
        blocks: Blocks of the transformer.
        batch: Batch size.
        turns: Number of turns.
        steps: Additional steps of a long run of each network, compared with the single step of a short run.
    """

    image: int
    channels: int
    tokens: int
    width: int
    blocks: int
    batch: int
    turns: int
    steps: tuple[int, int]


FULL = Size(32, 64, 32, 128, 4, 128, 3, (3, 10))
SMALL = Size(8, 4, 4, 16, 2, 16, 3, (4, 40))


class Case(NamedTuple):
    """A network, its task, and the number of timed steps."""

    network: Any
    task: Labelled
    steps: int


def residual(size: Size) -> Case:
    network = ResNet18((size.image, size.image, 3), CLASSES, width=size.channels)
    return Case(network, labelled(size.image**2 * 3, size), size.steps[0])


def transformer(size: Size) -> Case:
    network = Transformer(size.tokens, size.tokens, CLASSES, width=size.width, heads=4, blocks=size.blocks)
    task = labelled(size.tokens**2, size)
    rows = np.random.default_rng(1).integers(0, size.tokens, (size.batch, size.tokens))
    tokens = np.eye(size.tokens, dtype=np.float32)[rows].reshape(size.batch, -1)
    return Case(network, Labelled(tokens, task.labels), size.steps[1])


CASES = {"ResNet-18": residual, "transformer": transformer}


def labelled(columns: int, size: Size) -> Labelled:
    """Return one batch of samples, so that the evaluation at the end takes less than a step."""
    draw = np.random.default_rng(0)
    return Labelled(draw.normal(size=(size.batch, columns)).astype(np.float32), np.arange(size.batch) % CLASSES)


def all_charges(network: Any, inputs: np.ndarray) -> tuple[Charge, ...]:
    """Return the charges of the trained function, and those that it has if the ε of its normalisations is zero."""
    apply = getattr(type(network), "train_step_outputs", lambda each, x: (each(x), each))

    def log_probabilities(weights: Any, x: Any) -> Any:
        return jax.nn.log_softmax(apply(eqx.combine(weights, network), x)[0])

    found = find_symmetries(log_probabilities, trained_weights(network), inputs)
    return (*found.symmetries, *(each.charge for each in found.broken if each.reason == "ε of a norm"))


def momentum(rate: Any) -> optax.GradientTransformation:
    return optax.sgd(rate, momentum=MOMENTUM)


def trained(case: Case, batch: int, recorded: dict[str, Any]) -> Callable[[int], Any]:
    """Return a function that trains for a number of steps."""
    return lambda steps: descend(
        case.task,
        case.network,
        Descent(
            momentum,
            learning_rate=RATE,
            steps=steps,
            loss="cross_entropy",
            batches=batch,
            save=[steps],
            statistics=recorded,
        ),
    )


def alone(case: Case, recorded: dict[str, Any]) -> Callable[[], Any]:
    """Return the computation of the charges at one step, compiled separately."""
    law = recorded["predicted_charge"]
    weights = jax.tree.map(jax.numpy.asarray, trained_weights(case.network))
    update = jax.tree.map(lambda leaf: RATE * leaf, weights)

    def following(state: Any, weights: Any, update: Any) -> Any:
        step = types.SimpleNamespace(weights=weights, update=update, learning_rate=np.float32(RATE), unseen_update=0.0)
        return law.following(state, step)

    program = jax.jit(following)
    state = law.start(weights)
    return lambda: jax.block_until_ready(program(state, weights, update))


def seconds(run: Callable[[], Any]) -> np.ndarray:
    """Return wall time and CPU time."""
    start = time.perf_counter(), time.process_time()
    run()
    return np.array([time.perf_counter(), time.process_time()]) - start


def measure(case: Case, symmetries: Sequence[Charge], size: Size) -> None:
    """Print the time of a step with and without charges, and of the charges alone, after every turn."""
    recorded = charge_statistics(symmetries, momentum=MOMENTUM)
    kinds = {"plain": trained(case, size.batch, {}), "recorded": trained(case, size.batch, recorded)}
    by_itself = alone(case, recorded)
    for run in kinds.values():
        run(1)  # compiles
    by_itself()
    single, _ = seconds(lambda: kinds["recorded"](1))
    steps = size.turns * len(kinds) * (2 + case.steps)
    print(
        f"  {size.turns} turns with {steps} steps in total take at most {steps * single / 60:.1f} minutes", flush=True
    )
    turns: dict[str, list[np.ndarray]] = {kind: [] for kind in (*kinds, "alone")}
    for turn in range(1, size.turns + 1):
        for kind, run in kinds.items():
            # The difference of a long and a short run excludes the fixed cost of a run.
            short, long = (seconds(lambda run=run, n=n: run(n)) for n in (1, 1 + case.steps))
            turns[kind].append((long - short) / case.steps)
        turns["alone"] += [seconds(by_itself) for _ in range(ALONE)]
        print(f"  turn {turn} of {size.turns}, medians so far:")
        for place, word in enumerate(("wall time", "CPU time")):
            plain, more, single = (statistics.median(each[place] for each in turns[kind]) for kind in turns)
            print(f"  a step: {1e3 * plain:.0f} ms {word}; with all charges {more / plain - 1:+.1%};", end=" ")
            print(
                f"the charges alone {1e3 * single:.1f} ms, {single / plain:.2%} (target: below {TARGET:.0%})",
                flush=True,
            )


def main() -> None:
    options = argparse.ArgumentParser(description=str(__doc__).partition("\n")[0])
    options.add_argument("names", nargs="*", choices=[[], *CASES], help="networks; all by default")
    options.add_argument("--small", action="store_true")
    options.add_argument("--turns", type=int, help="number of turns, three by default")
    given = options.parse_args()
    size = SMALL if given.small else FULL
    size = size._replace(turns=given.turns or size.turns)
    for name in given.names or CASES:
        case = CASES[name](size)
        case = case._replace(network=jax.tree.map(lambda leaf: leaf.astype(np.float32), case.network))
        start = np.array([time.perf_counter(), time.process_time()])
        symmetries = all_charges(case.network, case.task.inputs[:2])
        clock, processor = np.array([time.perf_counter(), time.process_time()]) - start
        memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
        weights = sum(leaf.size for leaf in jax.tree.leaves(trained_weights(case.network)))
        charges = sum(each.size for each in symmetries)
        print(f"{name}: {weights:,} weights, {charges:,} charges in {len(symmetries)} families, found in", end=" ")
        print(f"{processor:.0f} s of CPU time, {clock:.0f} s of wall time, with {memory:.1f} GiB", flush=True)
        measure(case, symmetries, size)


if __name__ == "__main__":
    main()
