"""Exponent and prefactor of a power law, from the losses of any runs."""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from typing import Annotated, NamedTuple

import numpy as np
from annotated_types import Gt
from jaxtyping import Real
from numpy.typing import ArrayLike

from dynascope.theory.scaling_laws.curve_diagnosis import diagnose_curve, nearest_power_law
from dynascope.theory.scaling_laws.diagnosis import CALLER
from dynascope.theory.scaling_laws.misfit import require_one_law
from dynascope.theory.scaling_laws.profile_intervals import EXPONENT, FLOOR, LEVEL, profile_interval
from dynascope.theory.scaling_laws.spread import ExpectedLoss, Spread, spread_of
from dynascope.theory.scaling_laws.straight_window import (
    checked_window,
    local_slopes,
    straight_stretch,
    thinned,
)
from dynascope.theory.scaling_laws.unknown_floor import STEEPEST, RaisedPowerLaw
from dynascope.validation import checked, require, require_increasing, require_shape
from dynascope.validation.bounded import FiniteFloat, FiniteNumbers, NonNegativeFloat, OpenFraction, PositiveNumbers

__all__ = ["PowerLawFit", "fit"]


class PowerLawFit(NamedTuple):
    """L − floor + missing = prefactor · x^−exponent, in a window of the resource x.

    Attributes:
        prefactor: Loss at one unit of the resource.
        exponent: Positive if the loss falls.
        prefactor_interval: Its confidence interval, which may end at infinity if the exponent is large.
        exponent_interval: Its confidence interval, up to infinity where no steepness is contradicted.
        slope_spread: Least and greatest local exponent, between neighbouring thirds of the window, or decades of a wide
            one. Where they differ by more than the interval the loss bends. With a fitted floor, only of the points
            before the loss first reaches it.
        window: First and last resource that was fitted.
        points: Number of points that were fitted, at most 20 in a decade.
        runs: Number of runs.
        floor: The loss that stays, as given or as fitted.
        floor_interval: Its confidence interval, without width if it was given.
        missing: Loss that the task lacks, as given.
        spread: `Spread` of the logarithm of a further run's loss above what was given, for `loss`.
        suspects: Positions in the resource of the points that contradict the law of the others. They are part of the
            fit.
        misfit_p_value: Probability that losses of the law, without the suspects, deviate from it as systematically by
            chance: below 0.01 the law does not describe the losses, and the intervals do not hold. None if there are
            too few points to test it.
    """

    prefactor: float
    exponent: float
    prefactor_interval: tuple[float, float]
    exponent_interval: tuple[float, float]
    slope_spread: tuple[float, float]
    window: tuple[float, float]
    points: int
    runs: int
    floor: float
    floor_interval: tuple[float, float]
    missing: float
    spread: Spread
    suspects: tuple[int, ...]
    misfit_p_value: float | None

    def __repr__(self) -> str:
        ends = {name: getattr(self, f"{name}_interval") for name in ("exponent", "prefactor", "floor")}
        numbers = [
            f"  {name} {getattr(self, name):.4g} ({low:.4g} to {high:.4g})" for name, (low, high) in ends.items()
        ]
        first, last = self.window
        runs = f"{self.points} points of {self.runs} run{'s' * (self.runs > 1)}"
        lacking = f" - {self.missing:.4g}" if self.missing else ""
        head = f"L = floor + prefactor x^-exponent{lacking}, from {runs}, x = {first:.4g} to {last:.4g};"
        local = f"  local exponents {self.slope_spread[0]:.4g} to {self.slope_spread[1]:.4g}"
        p_value = self.misfit_p_value
        tested = "too few points to test the law" if p_value is None else f"misfit p = {p_value:.2g}"
        places = ", ".join(map(str, self.suspects))
        suspects = [f"  points that contradict the law of the others: {places}"] * bool(places)
        return "\n".join([head, f"with confidence intervals ({tested}):", *numbers, local, *suspects])

    @checked
    def loss(self, resource: PositiveNumbers, *, confidence: OpenFraction = 0.95) -> ExpectedLoss:
        """The loss at some amounts of the resource, and where that of a further run is to be expected there.

        Args:
            resource: x > 0, of any shape.
            confidence: Of the interval.

        Raises:
            InputError: A resource that is not positive, or a confidence that is not between 0 and 1.

        Example:
            >>> x = np.geomspace(10, 1e4, 31)
            >>> told = fit(2 * x**-0.4 + 0.1, x).loss(1e6)
            >>> print(f"{told.loss:.5f}")
            0.10796
        """
        x, given = np.log(np.ravel(resource)), self.spread.known - self.missing
        law = RaisedPowerLaw(math.log(self.prefactor), self.exponent, self.floor - self.spread.known)
        above, width = law.logarithm(x), self.spread.width(x, law, confidence)
        losses = [np.exp(above + share * width).reshape(np.shape(resource)) + given for share in (0, -1, 1)]
        return ExpectedLoss(*losses)


@checked
def fit(
    losses: FiniteNumbers,
    resource: Annotated[Real[ArrayLike, " points"], Gt(0)],
    *,
    window: tuple[FiniteFloat, FiniteFloat] | None = None,
    floor: NonNegativeFloat | None = None,
    missing: NonNegativeFloat = 0.0,
    confidence: OpenFraction = 0.95,
) -> PowerLawFit:
    """Fit a power law above a floor to losses against time, samples, parameters or compute.

    The law is L − floor + missing = prefactor · x^−exponent. Least squares of ln(L + missing), on at most 20 points in
    a decade. Losses of several runs are averaged before their logarithm is taken, as the mean of a logarithm is not
    that of the law. The floor is fitted with the rest, in the window that was given or on all points: a loss that bends
    for other reasons than its floor, as at the start of training, has to be left out. The further the loss is from its
    floor, the less it tells of it, which the intervals say.

    With a floor that is known it is a straight line of ln(L − floor + missing) over ln x, and the window is found if it
    is not given: the widest one, in ln x, in which the local exponents, between thirds or decades of it, differ by less
    than 3 %, or by less than twice what the scatter of neighbouring points explains. Of equally wide ones it is the
    straightest. It ends before the loss first reaches the floor.

    An interval holds the values that the losses do not contradict when everything else is fitted again
    (`profile_intervals.profile_interval`). It has the coverage it states if points of one run scatter independently, by
    a share of the loss above a floor that is known; with several runs if these are independent, whatever their points.

    With at least six fitted points, two checks show where an interval does not hold. Neither changes the fit, and both
    ignore deviations from the law below 0.1 % of the loss. `suspects` are the points that are more than six standard
    deviations from a law that is fitted without them, from least trimmed squares and a forward search.
    `misfit_p_value` tests whether the law without the suspects leaves curvature in ln x, or neighbouring residuals that
    depend on each other: one fit in a hundred fails by chance. A bend that looks like a floor passes if the floor is
    fitted. With `floor` the automatic window leaves out points before they are checked.

    Args:
        losses: L > 0, shape (points,) or (runs, points), where runs differ by their seeds alone. The losses of models
            of different size are no such runs: `fit_joint` takes them.
        resource: x > 0, increasing, shape (points,).
        window: Least and greatest resource to fit; found automatically if not given.
        floor: Loss that stays however much there is of the resource, such as that of absent neurons or label noise, if
            it is known; zero for none. Left out, it is fitted. It holds all that the other resources leave, as they
            were in these runs, and is not the floor of the task.
        missing: Loss ≥ 0 of the rare part of an infinite task that the finite one lacks, `missing_loss`.
        confidence: Of the intervals, between 0 and 1.

    Returns:
        `PowerLawFit`, which `plan` takes.

    Raises:
        InputError: Fewer than three points in the window, or five for a floor that is to be fitted; a loss there that
            is not above the floor; one that does not fall, or more steeply than with the exponent 20, if the floor is
            to be fitted; runs that are losses of different models; or numbers out of range.

    Warns:
        OutlierWarning: Some points contradict the law of the others: names them, and the exponent without them.
        MisfitWarning: The law does not describe the losses, or neighbouring points of one run are not independent: the
            intervals are too narrow and do not extrapolate.
        UserWarning: A window of less than a decade; or a floor of which the losses tell so little that half of the last
            loss may be it or none.

    References:
        Nam, DPhil thesis (2024), section C.1, for the missing loss.

    Example:
        >>> x = np.geomspace(10, 1e4, 31)
        >>> found = fit(2 * x**-0.4 + 0.1, x)
        >>> print(f"{found.prefactor:.6f} {found.exponent:.6f} {found.floor:.6f} {found.points}")
        2.000000 0.400000 0.100000 31
    """
    resource, runs = np.asarray(resource), np.asarray(losses)
    require_increasing("resource", resource)
    require_shape("losses", runs, (len(resource),) if runs.ndim <= 1 else (None, len(resource)))
    runs = np.atleast_2d(runs)
    require(len(runs) > 0, "there are no runs", argument="losses", value=0, remedy="give at least one")
    require_one_law(runs)
    known = 0.0 if floor is None else floor
    runs = runs - known + missing
    low, high = checked_window(window, resource)
    chosen = np.flatnonzero((resource >= low) & (resource <= high))
    chosen = chosen[thinned(np.log10(resource[chosen]))]
    if window is None and floor is not None:
        # Once the loss has reached its floor, what is above it is scatter.
        above = runs[:, chosen].mean(axis=0) > 0
        chosen = chosen[np.logical_and.accumulate(above)]
        require(
            len(chosen) >= 3 or bool(above.all()),
            f"the loss reaches the floor {floor} within {len(chosen)} points",
            argument="floor",
            value=floor,
            remedy="lower the floor, or record earlier",
        )
        if len(chosen) >= 3:
            first, last = straight_stretch(np.log(resource[chosen]), np.log(runs[:, chosen].mean(axis=0)))
            chosen = chosen[first:last]
    require(
        len(chosen) >= (3 if floor is not None else 5),
        f"{len(chosen)} points are in the window",
        argument="window" if window is not None else "losses",
        value=len(chosen),
        remedy="record at more points, or widen the window",
    )
    x, y = np.log(resource[chosen]), runs[:, chosen]
    least = float(y.mean(axis=0).min())
    require(
        least > 0,
        f"the loss less the floor is {least:.6g} in the window" if known else f"the loss is {least:.6g} in the window",
        argument="floor" if known else "losses",
        value=floor if known else least,
        remedy=f"{'lower the floor' if known else 'leave out what is not positive'}, or end the window before",
    )
    decades = (x[-1] - x[0]) / math.log(10)
    if decades < 1:
        warnings.warn(f"the window spans {decades:.2f} decades, too little to tell a power law", stacklevel=CALLER)
    law = nearest_power_law(x, y, floor_known=floor is not None)
    if floor is None:
        _require_power_law(law)
    fixed = (FLOOR,) if floor is not None else ()
    rest = y.mean(axis=0) - law.floor
    rest = rest[np.logical_and.accumulate(rest > 0)]
    require(
        len(rest) >= 3,
        f"the loss is at its floor of {law.floor:.6g} from point {len(rest) + 1} of the window on",
        argument="losses",
        value=len(rest),
        remedy="record earlier, or give a floor",
    )
    slopes = local_slopes(x[: len(rest)], np.log(rest))
    levels, exponents, floors = (
        (law[which], law[which]) if which in fixed else profile_interval(x, y, law, which, confidence, fixed=fixed)
        for which in (LEVEL, EXPONENT, FLOOR)
    )
    if floor is None:
        _warn_of_floor(x, law, floors)
    found = diagnose_curve(x, y, law, chosen, len(resource), floor_known=floor is not None, offset=known - missing)
    for category, sentence in found.warnings:
        warnings.warn(sentence, category, stacklevel=CALLER)
    with np.errstate(over="ignore"):
        prefactor, *prefactors = np.exp([law.level, *levels])
    return PowerLawFit(
        prefactor=float(prefactor),
        exponent=law.exponent,
        prefactor_interval=_pair(prefactors),
        exponent_interval=exponents,
        slope_spread=(float(slopes.min()), float(slopes.max())),
        window=_pair(resource[chosen[[0, -1]]]),
        points=len(chosen),
        runs=len(runs),
        floor=known + law.floor,
        floor_interval=_pair(known + np.array(floors)),
        missing=float(missing),
        spread=spread_of(x, y, law, fixed=fixed, known=known),
        suspects=tuple(chosen[found.suspects].tolist()),
        misfit_p_value=found.misfit_p_value,
    )


def _require_power_law(law: RaisedPowerLaw) -> None:
    """Reject a law with a fitted floor whose exponent is at its bound, where the loss tells nothing of the floor."""
    require(
        1e-9 < law.exponent < STEEPEST,
        "the loss does not fall in the window" if law.exponent < 1 else "the loss falls more steeply than a power law",
        argument="losses",
        value=law.exponent,
        remedy=f"give losses that fall with an exponent up to {STEEPEST:g}, or a floor",
    )


def _warn_of_floor(x: np.ndarray, law: RaisedPowerLaw, floors: tuple[float, float]) -> None:
    """Warn if the losses do not determine the floor."""
    last = float(np.exp(law.logarithm(x[-1:]))[0])
    if floors[0] <= 0 and floors[1] > last / 2:
        warnings.warn(
            f"the losses do not tell the floor: it may be anything from zero to {floors[1]:.3g}, and the last loss is "
            f"{last:.3g}; record further, or give the floor",
            stacklevel=CALLER + 1,
        )


def _pair(values: Sequence[float] | np.ndarray) -> tuple[float, float]:
    return float(values[0]), float(values[1])
