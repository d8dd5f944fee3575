"""Figures and text of the page of limiting-dynamics."""

from __future__ import annotations

from dynascope.results import Chart

__all__ = ["FIGURES", "MEANING"]

FIGURES = (
    Chart(
        "position_variance",
        over="step",
        log="xy",
        symbols={"mode": "mode"},
        y_label="variance along a mode",
        title="From the start to stationarity",
        caption="The spread of SGD over its runs, and exactly by the data (dashed). Along flat modes it takes "
        "longer to become what it is along steep ones.",
    ),
    Chart(
        ("position_variance", "langevin_position_variance"),
        over="step",
        log="xy",
        places={"mode": (0,)},
        words=("SGD", "Langevin runs"),
        y_label="variance along the steepest mode",
        title="SGD beside Langevin runs",
        caption="Langevin dynamics takes the noise for that at the minimum; that of SGD is larger on the way "
        "there, as residuals are. Dashed are both theories.",
    ),
    Chart(
        "velocity_mean",
        over="position_mean",
        symbols={"mode": "mode"},
        x_label="mean distance from the centre",
        y_label="mean velocity",
        title="On the way in, steep modes swing",
        caption="The mean path of the runs in the phase plane of each mode; exactly by theory dashed.",
    ),
    Chart(
        "share_below",
        over="modified_loss",
        symbols={"mode": "mode"},
        y_label="share of the runs below",
        title="What SGD samples is a modified loss",
        caption="The distribution of κΦ along each mode at the end. By theory it is 1 − exp(−x) (dashed) for all.",
    ),
    Chart(
        "contour_velocity",
        over="contour_position",
        places={"mode": (0,)},
        symbols={"contour": "", "angle": ""},
        arrows=True,
        x_label="distance from the centre along the steepest mode, over its standard deviation",
        y_label="velocity, over its standard deviation",
        title="Contours of the modified loss, and the currents along them",
        caption="Dashed are contours of the modified loss in the phase plane of the steepest mode, inside which "
        "theory has 20, 50 and 80 percent of the runs. Arrows are the mean motion of the runs there at the end, "
        "over half of the time in which theory has them go on to the next arrow. Nothing rests: along its "
        "contours the stationary state goes round for ever.",
    ),
    Chart(
        "current_velocity",
        over="current_position",
        symbols={"mode": "mode"},
        x_label="distance from the centre, over its standard deviation",
        y_label="velocity, over its standard deviation",
        title="Currents of the stationary state",
        caption="Of the runs that were on the right of the phase plane at one time, the mean path over the next "
        "{observed.lag:last} steps. All runs together stay as they are, yet they go round: modes that swing "
        "along a spiral. Dashed by theory.",
    ),
)

MEANING = (
    "Noise of batches keeps weights moving, and momentum gives them a velocity. From the start to the end, mean "
    "and spread of both were as the data say: of all that was compared, the worst was off by "
    "{observed.worst_deviation[run=SGD]} of its standard errors, where chance exceeds "
    "{observed.allowed_deviation:mean} once in a hundred experiments. In the end it is not the loss that decides "
    "where weights are: the steepest direction is also the noisiest, so that they spread nearly alike along all. "
    "Over what Langevin dynamics says, their variances were between {observed.variance_ratio:least} and "
    "{observed.variance_ratio:most}. And weights do not rest: those that swing go round in the plane of position "
    "and velocity for ever, {observed.circulation:mean} times as fast as theory says on average over the modes."
)
