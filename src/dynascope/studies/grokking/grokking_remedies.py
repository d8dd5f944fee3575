"""What is said to cure grokking: the runs that turn one dial each, their twins, and what is claimed of them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from dynascope.comparison.effect import Effect, Hypothesis

__all__ = ["DECIDING", "TABLE", "TWINS", "Dials", "put_claims", "remedies"]

TABLE = ("default", "weight downscaling", "target upscaling", "input downscaling", "output downscaling")
DECIDING = tuple(f"{remedy}: delay" for remedy in TABLE[1:])  # the claims that the remedies are remedies
# Which run is trained a second time, and what was changed instead of its own dial.
TWINS = {
    "output and decay for target": "target upscaling",
    "first layer for input": "input downscaling",
    "last layer for output": "output downscaling",
}


class Dials(NamedTuple):
    """Factors on the dials of the table; then those by which a twin makes up for a change of them.

    Attributes:
        weight: Factor on the initial weights.
        target: Factor on the targets.
        input: Factor on the inputs.
        output: Factor on the outputs.
        first_layer: c for the weights of the first layer: they start c times as large and take steps c times as long,
            and their decay is 1/c² of what it is elsewhere.
        last_layer: The same for the weights and biases of the last layer.
        decay: Factor on the weight decay, and on the ε of Adam.
    """

    weight: float
    target: float
    input: float = 1.0
    output: float = 1.0
    first_layer: float = 1.0
    last_layer: float = 1.0
    decay: float = 1.0


def remedies(default: Dials, *, weights: float, targets: float, inputs: float, outputs: float) -> dict[str, Dials]:
    """The runs of the table, each of which turns one dial of the default to the number given, then the twins."""
    table = {
        "default": default,
        "weight downscaling": default._replace(weight=weights),
        "target upscaling": default._replace(target=targets),
        "input downscaling": default._replace(input=inputs),
        "output downscaling": default._replace(output=outputs),
    }
    target = _power_of_two(default.target / targets)
    first, last = _power_of_two(inputs), _power_of_two(outputs)
    return table | {
        "output and decay for target": default._replace(target=targets * target, output=target, decay=target**2),
        "first layer for input": default._replace(input=inputs / first, first_layer=first),
        "last layer for output": default._replace(output=outputs / last, last_layer=last),
    }


def _power_of_two(factor: float) -> float:
    """The nearest one other than 1, by which numbers are multiplied without rounding."""
    return 2.0 ** (round(math.log2(factor)) or -1)


def put_claims(found: Mapping[str, Mapping[str, Any]]) -> tuple[list[Hypothesis], list[Effect]]:
    """The hypotheses, and what the runs of the table say of each.

    What is claimed of a delay is undecided where a run did not pass both thresholds, and so has no delay.

    Args:
        found: For each quantity its values for each run of the table, one for each seed.
    """
    told = {
        "delay": "shortens the delay",
        "delay_decades": "shortens the delay as a ratio of steps",
        "kappa_after": "brings fewer features in the end",
    }
    # Factor, two runs that differ in it, and how a statement about it begins.
    pairs = [(remedy, ("default", remedy), remedy.capitalize()) for remedy in TABLE[1:]]
    decay = "Small outputs for large targets, a stronger decay,"
    pairs.append(("decay", ("target upscaling", "output downscaling"), decay))
    # Factor, metric, statement, and the levels of the factor.
    claims = [
        (factor, metric, f"{begin} {words}.", [found[metric][run] for run in runs])
        for factor, runs, begin in pairs
        for metric, words in told.items()
    ]
    unknown = {factor for factor, runs, _ in pairs if not np.all([found["reached"][run] for run in runs])}
    claims += [
        (
            "steps",
            metric,
            f"By default, training on after the fit brings fewer features{where}.",
            [found[f"{metric}_{when}"]["default"] for when in ("before", "after")],
        )
        for metric, where in (("kappa", ""), ("test_kappa", " on test images"))
    ]
    hypotheses = [Hypothesis(factor, metric, -1, f"{factor}: {metric}", words) for factor, metric, words, _ in claims]
    effects = [each.compare(runs) for each, (*_, runs) in zip(hypotheses, claims, strict=True)]
    return hypotheses, [
        effect._replace(holds="undecided") if each.factor in unknown and each.metric.startswith("delay") else effect
        for each, effect in zip(hypotheses, effects, strict=True)
    ]
