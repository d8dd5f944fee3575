"""Figures and text of the study `limiting-dynamics`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dynascope.results import Chart, Comparison
from dynascope.results.numbers import rounded

if TYPE_CHECKING:
    from dynascope.studies.noise.limiting_dynamics.study import LimitingDynamics

__all__ = ["figures", "meaning"]


def figures(study: LimitingDynamics, result: Comparison) -> list[Chart]:
    """The figures: moments over time, modified loss, and currents in the stationary state."""
    return [
        Chart(
            "position_variance",
            over="step",
            log="xy",
            symbols={"mode": "mode"},
            y_label="variance along a mode",
            title="Variance from initialisation to the stationary state",
            caption="Variance of the position along each mode over all SGD runs (solid), and its exact value computed "
            "from the data (dashed). Flat modes become stationary later than steep modes.",
        ),
        Chart(
            ("position_variance", "langevin_position_variance"),
            over="step",
            log="xy",
            places={"mode": (0,)},
            words=("SGD", "Langevin runs"),
            y_label="variance along the steepest mode",
            title="Variance under SGD and Langevin dynamics",
            caption="Langevin dynamics uses the gradient noise at the minimum. The gradient noise of SGD also depends "
            "on the residuals, and therefore on the distance from the minimum. Dashed lines show the theory for both.",
        ),
        Chart(
            "velocity_mean",
            over="position_mean",
            symbols={"mode": "mode"},
            x_label="mean distance from the centre",
            y_label="mean velocity",
            title="Mean path to the minimum in phase space",
            caption="Mean velocity against mean position along each mode (solid), and the exact values (dashed). "
            "Oscillating modes spiral into the minimum.",
        ),
        Chart(
            "share_below",
            over="modified_loss",
            symbols={"mode": "mode"},
            y_label="fraction of runs below",
            title="Distribution of the modified loss",
            caption="Cumulative distribution of κΦ along each mode at the last step. Theory predicts 1 − exp(−x) for "
            "every mode (dashed).",
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
            caption="Dashed lines are contours of the modified loss in the phase plane of the steepest mode. Theory "
            "predicts that these contours enclose 20, 50 and 80 percent of the runs, and that the stationary current "
            "flows along "
            "them. Arrows show the mean motion of the runs near each contour in the stationary state, over half the "
            "predicted time to the next arrow.",
        ),
        Chart(
            "current_velocity",
            over="current_position",
            symbols={"mode": "mode"},
            x_label="distance from the centre / standard deviation",
            y_label="velocity / standard deviation",
            title="Circulation of selected runs",
            caption="At one step in the stationary state, the runs in a sector around the positive position axis are "
            f"selected. The figure shows their mean path over the next {int(result.observed['lag'][-1])} steps (solid) "
            "and the prediction (dashed), which is a spiral in oscillating modes. Individual runs circulate although "
            "the distribution over all runs is stationary.",
        ),
    ]


def meaning(study: LimitingDynamics, result: Comparison) -> str:
    """Summarise how well theory describes the moments, the stationary variances and the currents."""
    found = result.observed
    worst, allowed = (found[name].sel(run="SGD") for name in ("worst_deviation", "allowed_deviation"))
    variances = found["variance_ratio"]
    return (
        "Minibatch noise keeps the weights moving after the loss has converged. From initialisation to the stationary "
        f"state, the largest deviation of the moments of SGD from their exact values is {rounded(worst)} standard "
        f"errors; by chance, it would exceed {rounded(allowed)} in one experiment out of a hundred. Theory predicts "
        "that stationary SGD samples the Gibbs distribution of a modified loss: steep directions are also noisy, so "
        f"the variances along all directions are similar. The measured variances are {rounded(variances.min())} to "
        f"{rounded(variances.max())} times the Langevin prediction. Position and velocity circulate in the phase plane "
        f"at {rounded(found['circulation'].mean())} times the predicted rate, averaged over the modes."
    )
