"""Figures and text of the study `limiting-dynamics`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dynascope.results import Chart, Comparison
from dynascope.results.numbers import rounded

if TYPE_CHECKING:
    from dynascope.studies.noise.limiting_dynamics.study import LimitingDynamics

__all__ = ["figures", "meaning"]


def figures(study: LimitingDynamics, result: Comparison) -> list[Chart]:
    """The moments over time, the modified loss, and the currents of the stationary state."""
    return [
        Chart(
            "position_variance",
            over="step",
            log="xy",
            symbols={"mode": "mode"},
            y_label="variance along a mode",
            title="Variance from initialisation to the stationary state",
            caption="Variance over the runs of SGD, and its exact value from the data (dashed). Flat modes take longer "
            "than steep modes to become stationary.",
        ),
        Chart(
            ("position_variance", "langevin_position_variance"),
            over="step",
            log="xy",
            places={"mode": (0,)},
            words=("SGD", "Langevin runs"),
            y_label="variance along the steepest mode",
            title="Variance of SGD and of Langevin dynamics",
            caption="Langevin dynamics uses the gradient noise at the minimum. The noise of SGD also depends on the "
            "distance from the minimum, because the residuals do. The dashed lines show the theory of both.",
        ),
        Chart(
            "velocity_mean",
            over="position_mean",
            symbols={"mode": "mode"},
            x_label="mean distance from the centre",
            y_label="mean velocity",
            title="Mean path to the minimum in phase space",
            caption="Mean position and velocity of the runs along each mode, and their exact values (dashed). "
            "Oscillating modes spiral into the minimum.",
        ),
        Chart(
            "share_below",
            over="modified_loss",
            symbols={"mode": "mode"},
            y_label="share of runs below",
            title="Distribution of the modified loss",
            caption="Cumulative distribution of κΦ along each mode at the last step. The theory predicts 1 − exp(−x) "
            "(dashed) for every mode.",
        ),
        Chart(
            "contour_velocity",
            over="contour_position",
            places={"mode": (0,)},
            symbols={"contour": "", "angle": ""},
            arrows=True,
            x_label="distance from the centre along the steepest mode / standard deviation",
            y_label="velocity / standard deviation",
            title="Currents along contours of the modified loss",
            caption="The dashed lines are contours of the modified loss in the phase plane of the steepest mode; the "
            "theory predicts 20, 50 and 80 percent of the runs inside them. The arrows show the mean motion of the "
            "runs near each contour in the stationary state, over half of the time that the theory predicts for the "
            "distance to the next arrow. In the stationary state of the theory, this current follows the contours.",
        ),
        Chart(
            "current_velocity",
            over="current_position",
            symbols={"mode": "mode"},
            x_label="distance from the centre / standard deviation",
            y_label="velocity / standard deviation",
            title="Circulation of selected runs",
            caption=f"Mean path, over the next {int(result.observed['lag'][-1])} steps, of the runs that are on the "
            "right of the phase plane at the same time, and the theory (dashed). The distribution of all runs is "
            "stationary, although single runs circulate. In oscillating modes, the predicted path is a spiral.",
        ),
    ]


def meaning(study: LimitingDynamics, result: Comparison) -> str:
    """How well the exact moments describe SGD, and the variances and currents of the stationary state."""
    found = result.observed
    worst, allowed = (found[name].sel(run="SGD") for name in ("worst_deviation", "allowed_deviation"))
    variances = found["variance_ratio"]
    return (
        "Minibatch noise keeps the weights moving, and momentum gives them a velocity. The study compares the means "
        "and covariances of position and velocity, from initialisation to the stationary state, with their exact "
        f"values. The largest deviation of SGD is {rounded(worst)} standard errors; by chance it exceeds "
        f"{rounded(allowed)} in at most one of a hundred experiments. In the stationary state, the theory predicts "
        "that the weights do not sample the loss itself: the steepest directions are also the noisiest, so that the "
        "variances of all directions are similar. Relative to the prediction of Langevin dynamics, the measured "
        f"variances along the modes are {rounded(variances.min())} to {rounded(variances.max())}. The weights never "
        "come to rest: position and velocity circulate in the phase plane, on average over the modes at "
        f"{rounded(found['circulation'].mean())} times the predicted rate."
    )
