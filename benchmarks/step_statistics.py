"""What eight statistics of every step cost, against the same training without them.

A convolutional network learns labelled images of 28 × 28 pixels by Adam in float32. The statistics are those that the
study of noise and conservation asks for: lengths of gradients, updates and displacements by weight array, a recursion,
and the latest and largest of numbers. The aim is less than 3 % of a step. Run as
`python benchmarks/step_statistics.py`; `--tiny` runs the same on small sizes in seconds.
"""

from __future__ import annotations

import argparse
import math
import time
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax

from dynascope.networks import Convolutional
from dynascope.tasks import Labelled
from dynascope.training import Descent, Largest, Latest, Recursion, Total, descend, squared_norms

AIM = 0.03
TURNS = 12
EIGHT = {
    "path": Total(lambda step: squared_norms(step.update), ["group"]),
    "noise": Total(lambda step: squared_norms(step.gradient), ["group"]),
    "overlap": Total(lambda step: jnp.vdot(step.gradient.hidden, step.weights.hidden)),
    "losses": Total(lambda step: step.loss**2),
    "steepest": Largest(lambda step: squared_norms(step.gradient).sum()),
    "batch_loss": Latest(lambda step: step.loss),
    "distance": Latest(lambda step: squared_norms(step.displacement), ["group"]),
    "mean_loss": Recursion(
        lambda weights: jnp.zeros((), jnp.float32), lambda state, step: 0.9 * state + 0.1 * step.loss
    ),
}
KINDS = {"without": None, "with": EIGHT}


class Size(NamedTuple):
    """What is trained, for how long."""

    side: int
    channels: tuple[int, ...]
    samples: int
    batch: int
    steps: int


FULL = Size(28, (8, 16), 2000, 64, 20)
TINY = Size(8, (2, 2), 40, 10, 4)


def main() -> None:
    options = argparse.ArgumentParser(description=str(__doc__).partition("\n")[0])
    options.add_argument("--tiny", action="store_true")
    size = TINY if options.parse_args().tiny else FULL
    draw = np.random.default_rng(0)
    images = draw.normal(size=(size.samples, size.side**2)).astype(np.float32)
    task = Labelled(images, np.arange(size.samples) % 10)
    network = Convolutional((size.side, size.side), 10, channels=size.channels, width=64)
    network = jax.tree.map(lambda w: w.astype(np.float32), network)

    def seconds(steps: int, accumulated: dict | None) -> float:
        start = time.perf_counter()
        descend(
            task,
            network,
            Descent(
                optax.adam,
                learning_rate=1e-3,
                steps=steps,
                loss="cross_entropy",
                batches=size.batch,
                save=[steps],
                statistics=accumulated,
            ),
        )
        return time.perf_counter() - start

    # A long run less a short one, which share what a run costs once; of each the fastest of many turns, since whatever
    # else the machine does only adds to it.
    lengths = size.steps, 4 * size.steps
    fastest = {(steps, kind): math.inf for steps in lengths for kind in KINDS}
    for turn in range(TURNS + 1):
        for (steps, kind), best in fastest.items():
            spent = seconds(steps, KINDS[kind])
            # The first turn compiles.
            fastest[steps, kind] = min(best, spent) if turn else best
    plain, more = ((fastest[lengths[1], kind] - fastest[lengths[0], kind]) / (3 * size.steps) for kind in KINDS)
    print(
        f"a step: {1e3 * plain:.2f} ms; eight statistics of every step: {more / plain - 1:+.1%} (aim: below {AIM:.0%})"
    )


if __name__ == "__main__":
    main()
