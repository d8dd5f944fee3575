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
# For each quantity, its name in the names of claims, and the effect of a remedy.
_CURES = {
    "delay": ("delay", "shortens the delay"),
    "delay_decades": ("delay in decades", "shortens the delay, measured as a ratio of steps"),
    "kappa_after": ("final features", "brings the final features closer to minimum features"),
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

    Claims about a delay are undecided if a network did not reach both thresholds.
    """
    # Factor, the two runs that differ in it, and the subject of its claims.
    pairs = [(remedy, ("default", remedy), remedy.capitalize()) for remedy in _CHANGES]
    decay = "Stronger weight decay (output downscaling instead of target upscaling)"
    pairs.append(("weight decay", ("target upscaling", "output downscaling"), decay))
    claims, undecided = [], {}
    for factor, runs, begin in pairs:
        for metric, (name, words) in _CURES.items():
            values = [found[metric][run] for run in runs]
            claims.append((Hypothesis(factor, metric, -1, f"{factor}: {name}", f"{begin} {words}."), values))
        if unreached := _unreached(found, runs):
            undecided |= {f"{factor}: {_CURES[metric][0]}": unreached for metric in ("delay", "delay_decades")}
    for metric, where in (("kappa", ""), ("test_kappa", " on test images")):
        words = f"In the default run, training beyond the fit brings the features closer to minimum features{where}."
        hypothesis = Hypothesis("training steps", metric, -1, f"training steps: features{where}", words)
        claims.append((hypothesis, [found[f"{metric}_{when}"]["default"] for when in ("before", "after")]))
    return report_runs(claims, undecided=undecided)


def _unreached(found: Mapping[str, Mapping[str, Any]], runs: tuple[str, str]) -> str:
    """Explain why the difference between the delays of two runs is unknown; empty if all thresholds are reached."""
    short = {
        (run, threshold): np.size(found[threshold][run]) - np.sum(found[threshold][run])
        for run in runs
        for threshold in ("fitted", "generalised")
    }
    reasons = [
        f"{count} of {np.size(found[threshold][run])} {run} networks did not reach the "
        f"{'training' if threshold == 'fitted' else 'test'} threshold by the end of training"
        for (run, threshold), count in short.items()
        if count
    ]
    # A network that fits but does not generalise has a longer delay than the recorded one.
    below, above = (short[run, "generalised"] > 0 for run in runs)
    bound = "" if any(short[run, "fitted"] for run in runs) or below == above else "at most" if below else "at least"
    return "; ".join([*([f"the true change is {bound} this value"] if bound else []), *reasons])
