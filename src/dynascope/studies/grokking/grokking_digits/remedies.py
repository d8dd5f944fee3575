"""What is said to cure grokking: the runs that turn one dial each, their twins, and what is claimed of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from dynascope.comparison.effect import Hypothesis, report_runs
from dynascope.studies.grokking.grokking_digits.twins import Dials, twins

__all__ = ["DECIDING", "TABLE", "TWINS", "put_claims", "remedies"]

_CHANGES = ("weight downscaling", "target upscaling", "input downscaling", "output downscaling")
TABLE: tuple[str, ...] = ("default", *_CHANGES)
DECIDING = tuple(f"{remedy}: delay" for remedy in _CHANGES)  # the claims that the remedies are remedies
# Which run is trained a second time, and what was changed instead of its own dial.
TWINS = {
    "output and decay for target": "target upscaling",
    "first layer for input": "input downscaling",
    "last layer for output": "output downscaling",
}
_CURES = {
    "delay": "shortens the delay",
    "delay_decades": "shortens the delay as a ratio of steps",
    "kappa_after": "brings fewer features in the end",
}


def remedies(default: Dials, *, weights: float, targets: float, inputs: float, outputs: float) -> dict[str, Dials]:
    """The runs of the table, each of which turns one dial of the default to the number given, then the twins."""
    dials = {"weight": weights, "target": targets, "input": inputs, "output": outputs}
    turned = [default._replace(**{dial: value}) for dial, value in dials.items()]
    made = twins(default, targets=targets, inputs=inputs, outputs=outputs)
    return dict(zip((*TABLE, *TWINS), (default, *turned, *made), strict=True))


def put_claims(found: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """What the runs of the table say of the hypotheses, by each quantity over runs and seeds.

    What is claimed of a delay is undecided where a run did not pass both thresholds, and so has no delay.
    """
    # Factor, two runs that differ in it, and how a statement about it begins.
    pairs = [(remedy, ("default", remedy), remedy.capitalize()) for remedy in _CHANGES]
    decay = "Small outputs for large targets, a stronger decay,"
    pairs.append(("decay", ("target upscaling", "output downscaling"), decay))
    claims, undecided = [], {}
    for factor, runs, begin in pairs:
        for metric, words in _CURES.items():
            claims.append((factor, metric, f"{begin} {words}.", [found[metric][run] for run in runs]))
        reached = np.array([found["reached"][run] for run in runs])
        if not reached.all():
            few = f"{reached.sum()} of {reached.size} networks passed both thresholds"
            undecided |= {f"{factor}: {metric}": few for metric in ("delay", "delay_decades")}
    for metric, where in (("kappa", ""), ("test_kappa", " on test images")):
        words = f"By default, training on after the fit brings fewer features{where}."
        claims.append(("steps", metric, words, [found[f"{metric}_{when}"]["default"] for when in ("before", "after")]))
    hypotheses = [
        (Hypothesis(factor, metric, -1, f"{factor}: {metric}", words), runs) for factor, metric, words, runs in claims
    ]
    return report_runs(hypotheses, undecided=undecided)
