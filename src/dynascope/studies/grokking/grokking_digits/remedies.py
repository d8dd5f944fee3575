"""Remedies for delayed generalisation: runs that change one scale factor each, their twins, and their claims."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from dynascope.comparison.effect import Hypothesis, report_runs
from dynascope.studies.grokking.grokking_digits.twins import ScaleFactors, twins

__all__ = ["DECIDING", "TABLE", "TWINS", "remedies", "remedy_claims"]

_CHANGES = ("weight downscaling", "target upscaling", "input downscaling", "output downscaling")
TABLE: tuple[str, ...] = ("default", *_CHANGES)
DECIDING = tuple(f"{remedy}: delay" for remedy in _CHANGES)  # the claims that decide the verdict
# For each twin, named by the factors it changes, the run that it repeats.
TWINS = {
    "output and decay for target": "target upscaling",
    "first layer for input": "input downscaling",
    "last layer for output": "output downscaling",
}
_CURES = {
    "delay": "shortens the delay",
    "delay_decades": "shortens the delay, measured as a ratio of steps",
    "kappa_after": "brings the final features closer to minimum features",
}


def remedies(
    default: ScaleFactors, *, weights: float, targets: float, inputs: float, outputs: float
) -> dict[str, ScaleFactors]:
    """The default run, the remedies, each of which changes one factor of the default, and the twins."""
    changes = {"weight": weights, "target": targets, "input": inputs, "output": outputs}
    changed = [default._replace(**{factor: value}) for factor, value in changes.items()]
    repeated = twins(default, targets=targets, inputs=inputs, outputs=outputs)
    return dict(zip((*TABLE, *TWINS), (default, *changed, *repeated), strict=True))


def remedy_claims(found: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """Evaluate every claim from the quantities of each run over seeds.

    Claims about a delay are undecided if a run did not reach both thresholds.
    """
    # Factor, the two runs that differ in it, and the subject of its claims.
    pairs = [(remedy, ("default", remedy), remedy.capitalize()) for remedy in _CHANGES]
    decay = "Stronger weight decay (output downscaling instead of target upscaling)"
    pairs.append(("decay", ("target upscaling", "output downscaling"), decay))
    claims, undecided = [], {}
    for factor, runs, begin in pairs:
        for metric, words in _CURES.items():
            claims.append((factor, metric, f"{begin} {words}.", [found[metric][run] for run in runs]))
        reached = np.array([found["reached"][run] for run in runs])
        if not reached.all():
            few = f"only {reached.sum()} of {reached.size} networks reached both thresholds"
            undecided |= {f"{factor}: {metric}": few for metric in ("delay", "delay_decades")}
    for metric, where in (("kappa", ""), ("test_kappa", " on test images")):
        words = f"In the default run, training beyond the fit brings the features closer to minimum features{where}."
        claims.append(("steps", metric, words, [found[f"{metric}_{when}"]["default"] for when in ("before", "after")]))
    hypotheses = [
        (Hypothesis(factor, metric, -1, f"{factor}: {metric}", words), runs) for factor, metric, words, runs in claims
    ]
    return report_runs(hypotheses, undecided=undecided)
