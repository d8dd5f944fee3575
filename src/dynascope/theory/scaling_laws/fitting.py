"""Fit of a power law in one resource to measured losses."""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from typing import Annotated, NamedTuple

import numpy as np
from annotated_types import Gt
from jaxtyping import Real
from numpy.typing import ArrayLike

from dynascope.results.numbers import counted
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
    """The fitted power law L − floor + missing = prefactor · x^−exponent, in a window of the resource x.

    Attributes:
        prefactor: Loss above the floor at x = 1.
        exponent: Exponent of the law; positive if the loss falls.
        prefactor_interval: Confidence interval of the prefactor. The upper end may be infinite if the exponent is
            large.
        exponent_interval: Confidence interval of the exponent. The upper end is infinite if the losses are compatible
            with arbitrarily large exponents.
        slope_spread: Smallest and largest local exponent, between neighbouring thirds of the window, or between decades
            if the window is wide. If their difference exceeds the width of the interval, the log-log curve bends. With
            a fitted floor, only points before the loss first reaches the floor are used.
        window: First and last value of the resource in the fit.
        points: Number of points in the fit, at most 20 per decade.
        runs: Number of runs.
        floor: Irreducible loss, given or fitted.
        floor_interval: Confidence interval of the floor, of zero width if the floor was given.
        missing: The given loss of the skills that the task lacks.
        spread: `Spread` of the log losses of individual runs about the law, from which `loss` computes its interval.
        suspects: Indices of the points that contradict the law fitted to the others. The fit includes the suspects.
        misfit_p_value: P value of the test that the law, without the suspects, describes the losses. If it is below
            0.01, the law does not describe the losses, and the intervals are invalid. None if there are too few points
            for the test.
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
        suspects = [f"  points that contradict the law fitted to the others: {places}"] * bool(places)
        return "\n".join([head, f"with confidence intervals ({tested}):", *numbers, local, *suspects])

    @checked
    def loss(self, resource: PositiveNumbers, *, confidence: OpenFraction = 0.95) -> ExpectedLoss:
        """Predict the loss at given amounts of the resource, with a prediction interval for a further run.

        Args:
            resource: x > 0, of any shape.
            confidence: Confidence level of the interval, between 0 and 1.

        Raises:
            InputError: If a resource is not positive, or the confidence is not between 0 and 1.

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

    The law is

        L − floor + missing = prefactor · x^−exponent.

    The law is fitted by least squares of ln(L + missing) on at most 20 points per decade. Losses of several runs are
    averaged before the logarithm is taken, because the mean of the logarithms is biased.

    If no floor is given, the floor is fitted together with the prefactor and exponent, in the given window or on all
    points. Exclude points at which the curve bends for other reasons, such as those early in training. The further the
    losses are from the floor, the wider the interval of the floor.

    If the floor is given, `fit` fits a straight line to ln(L − floor + missing) against ln x. If no window is given,
    `fit` chooses the widest window in ln x in which the log-log curve is straight. A window is straight if its local
    exponents, between thirds or decades, differ by less than 3 % or by less than twice the effect of scatter. Of
    equally wide windows, `fit` chooses the straightest. The window ends before the loss first reaches the floor.

    Confidence intervals are profile intervals (`profile_intervals.profile_interval`): they contain the values of a
    coefficient that are compatible with the losses when all other coefficients are refitted. For a single run, their
    coverage is correct if the points scatter independently, in proportion to the loss above a known floor. Different
    runs must be independent of each other, but the points of each run need not be.

    With at least six fitted points, two checks detect invalid intervals. Neither check changes the fit, and both ignore
    deviations from the law below 0.1 % of the loss. `suspects` lists the points that are more than six standard
    deviations from a law fitted without them; they are found by least trimmed squares and a forward search.
    `misfit_p_value` tests whether the residuals of the law, fitted without the suspects, are curved in ln x or
    correlated between neighbours. One valid fit in a hundred fails the test of `misfit_p_value` by chance. A fitted
    floor can absorb a bend that has another cause. If `floor` is given, the automatic window excludes points before the
    checks.

    Args:
        losses: L > 0, shape (points,) or (runs, points). Runs may differ only in their seeds; for models of different
            sizes, use `fit_joint`.
        resource: x > 0, increasing, shape (points,).
        window: Smallest and largest resource to fit; chosen automatically if not given.
        floor: Known loss that remains if the resource is unlimited, such as the loss from absent neurons or label
            noise; zero for no floor. If not given, the floor is fitted. The floor includes the loss due to the other
            resources at their values in these runs, so it is not the floor of the task.
        missing: Loss ≥ 0 of the rare skills of an infinite task that are absent from the finite task, from
            `missing_loss`.
        confidence: Confidence level of the intervals, between 0 and 1.

    Returns:
        A `PowerLawFit`, which `plan` accepts.

    Raises:
        InputError: If the window contains fewer than three points (five if the floor is fitted) or a loss not above the
            floor; if the floor is fitted, and the loss does not fall or falls with an exponent above 20; if the rows
            are losses of different models; or if a number is out of range.

    Warns:
        OutlierWarning: If some points contradict the law fitted to the others. The warning lists these points and the
            exponent without them.
        MisfitWarning: If the law does not describe the losses, or neighbouring points of a single run are correlated.
            The intervals are then too narrow, and the law must not be extrapolated.
        UserWarning: If losses are not above the given floor and are therefore not fitted; if the window spans less than
            a decade; or if the interval of the fitted floor extends from zero to more than half of the last loss.

    References:
        Nam, DPhil thesis (2024), section C.1, for the missing loss.

    Example:
        >>> x = np.geomspace(10, 1e4, 31)
        >>> found = fit(2 * x**-0.4 + 0.1, x)
        >>> print(f"{found.prefactor:.6f} {found.exponent:.6f} {found.floor:.6f} {found.points}")
        2.000000 0.400000 0.100000 31
    """
    resource, runs = np.asarray(resource), np.asarray(losses)
    swapped = runs.ndim == 1 and len(runs) > 1 and bool(np.all(np.diff(runs) > 0) and np.all(np.diff(resource) < 0))
    require_increasing(
        "resource",
        resource,
        remedy="give the losses first and the resource second: fit(losses, resource)"
        if swapped
        else "sort the numbers and drop duplicates",
    )
    require_shape("losses", runs, (len(resource),) if runs.ndim <= 1 else (None, len(resource)))
    runs = np.atleast_2d(runs)
    require(len(runs) > 0, "there are no runs", argument="losses", value=0, remedy="give at least one run")
    require_one_law(runs)
    known = 0.0 if floor is None else floor
    runs = runs - known + missing
    low, high = checked_window(window, resource)
    chosen = np.flatnonzero((resource >= low) & (resource <= high))
    chosen = chosen[thinned(np.log10(resource[chosen]))]
    if window is None and floor is not None:
        # After the loss first reaches its floor, losses above the floor are noise.
        above = runs[:, chosen].mean(axis=0) > 0
        out = resource >= np.append(resource[chosen][~above], np.inf)[0]
        chosen = chosen[np.logical_and.accumulate(above)]
        require(
            len(chosen) >= 3 or bool(above.all()),
            f"the loss reaches the floor {floor} within {len(chosen)} points",
            argument="floor",
            value=floor,
            remedy="give a lower floor, or record the loss earlier in training",
        )
        if not above.all():
            warnings.warn(
                _floor_sentence(floor, int(np.sum(runs.mean(axis=0) <= 0)), int(out.sum())), stacklevel=CALLER
            )
        if len(chosen) >= 3:
            first, last = straight_stretch(np.log(resource[chosen]), np.log(runs[:, chosen].mean(axis=0)))
            chosen = chosen[first:last]
    require(
        len(chosen) >= (3 if floor is not None else 5),
        f"the window contains too few points ({len(chosen)})",
        argument="window" if window is not None else "losses",
        value=len(chosen),
        remedy="record more points, or widen the window",
    )
    x, y = np.log(resource[chosen]), runs[:, chosen]
    least = float(y.mean(axis=0).min())
    require(
        least > 0,
        f"the loss{' minus the floor' if known else ''} reaches {least:.6g} in the window, but must be positive",
        argument="floor" if known else "losses",
        value=floor if known else least,
        remedy=f"{'lower the floor' if known else 'remove losses that are not positive'}, or end the window earlier",
    )
    decades = (x[-1] - x[0]) / math.log(10)
    if decades < 1:
        warnings.warn(
            f"the window spans only {decades:.2f} decades, too few to identify a power law", stacklevel=CALLER
        )
    law = nearest_power_law(x, y, floor_known=floor is not None)
    if floor is None:
        _require_power_law(law)
    fixed = (FLOOR,) if floor is not None else ()
    rest = y.mean(axis=0) - law.floor
    rest = rest[np.logical_and.accumulate(rest > 0)]
    require(
        len(rest) >= 3,
        f"the loss is at its floor of {law.floor:.6g} from point {len(rest) + 1} of the window onwards",
        argument="losses",
        value=len(rest),
        remedy="record the loss earlier in training, or give a floor",
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


def _floor_sentence(floor: float, low: int, left: int) -> str:
    """Describe the points that are not fitted because the losses do not stay above the given floor.

    Example:
        >>> print(_floor_sentence(1.6, 1, 2))
        One loss is not above the floor 1.6, which contradicts this floor unless the difference is noise. The fit leaves
        out the last two points, from the first such loss onwards; give a lower floor, or omit the floor to fit it.
    """
    losses = "One loss is" if low == 1 else f"{counted(low).capitalize()} losses are"
    points = "point" if left == 1 else f"{counted(left)} points"
    return (
        f"{losses} not above the floor {floor:g}, which contradicts this floor unless the difference is noise. "
        f"The fit leaves out the last {points}, from the first such loss onwards; "
        "give a lower floor, or omit the floor to fit it."
    )


def _require_power_law(law: RaisedPowerLaw) -> None:
    """Reject a law with a fitted floor if its exponent is at a bound and the losses do not determine the floor."""
    require(
        1e-9 < law.exponent < STEEPEST,
        "the loss does not decrease within the window"
        if law.exponent < 1
        else "the loss decreases more steeply than a power law",
        argument="losses",
        value=law.exponent,
        remedy=f"give losses that decrease with an exponent of at most {STEEPEST:g}, or a floor",
    )


def _warn_of_floor(x: np.ndarray, law: RaisedPowerLaw, floors: tuple[float, float]) -> None:
    """Warn if the losses do not determine the floor."""
    last = float(np.exp(law.logarithm(x[-1:]))[0])
    if floors[0] <= 0 and floors[1] > last / 2:
        warnings.warn(
            f"the losses do not determine the floor, which may be anywhere from zero to {floors[1]:.3g} (the "
            f"last loss is {last:.3g}); continue the runs, or give the floor",
            stacklevel=CALLER + 1,
        )


def _pair(values: Sequence[float] | np.ndarray) -> tuple[float, float]:
    return float(values[0]), float(values[1])
