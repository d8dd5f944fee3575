"""Fit of a joint law in parameters and data to measured losses, with the optimal split of compute."""

from __future__ import annotations

import dataclasses
import math
import warnings
from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from dynascope.results.named_tuples import short_repr
from dynascope.theory.scaling_laws.diagnosis import (
    CALLER,
    UNLIKELY,
    MisfitWarning,
    OutlierWarning,
    misfit_sentence,
    outlier_sentence,
)
from dynascope.theory.scaling_laws.joint_diagnosis import curvature_p_value, outlying_runs
from dynascope.theory.scaling_laws.joint_law import IsoFlop, JointLaw, Split
from dynascope.theory.scaling_laws.joint_profile import (
    JointProfile,
    Quantity,
    best_exponent,
    best_loss,
    best_size,
    law_parameter,
    loss_at,
    prefactor,
)
from dynascope.theory.scaling_laws.joint_search import UPPER, Scaled, checked_runs, nearest_joint_law
from dynascope.theory.scaling_laws.spread import ExpectedLoss
from dynascope.validation import checked
from dynascope.validation.bounded import OpenFraction, PositiveFloat, PositiveNumbers

__all__ = ["JointLawFit", "SplitIntervals", "fit_joint"]

_TOGETHER = 0.99  # correlation of ln N and ln D above which their terms cannot be separated


class SplitIntervals(NamedTuple):
    """Confidence intervals of the optimal split of compute: first the lower ends, then the upper ends.

    Attributes:
        parameters: Interval of N*.
        data: Interval of D*.
        loss: Interval of the loss at N* and D*.
        exponent: Interval of the exponent of N* ∝ C^exponent.
    """

    parameters: tuple[Float[np.ndarray, ...], Float[np.ndarray, ...]]
    data: tuple[Float[np.ndarray, ...], Float[np.ndarray, ...]]
    loss: tuple[Float[np.ndarray, ...], Float[np.ndarray, ...]]
    exponent: tuple[float, float]

    __repr__ = short_repr


@dataclasses.dataclass(frozen=True, repr=False)
class JointLawFit:
    """The joint law L = E + A N^−a + B D^−b, fitted to losses.

    If the losses do not bound a coefficient from below or above, its interval extends to zero or to infinity.

    Attributes:
        law: The fitted law.
        floor_interval: Confidence interval of E.
        parameters_prefactor_interval: Confidence interval of A.
        parameters_exponent_interval: Confidence interval of a.
        data_prefactor_interval: Confidence interval of B.
        data_exponent_interval: Confidence interval of b.
        scatter: Standard deviation of ln L about the law, without outliers.
        points: Number of losses, including outliers.
        outliers: Indices, in the flattened losses, of the runs that contradict the law fitted to the others. The fit
            excludes the outliers.
        misfit_p_value: P value of the test for residual curvature in ln N and ln D. If it is below 0.01, the law does
            not describe the losses, and the intervals are invalid. None if there are too few runs for the test.
        confidence: Confidence level of the intervals.
        unclear: Warning messages of this fit; empty if there are none.
        profile: Profile of the loss around the fitted law, used to compute further intervals.
        centres: Means of ln N, ln D and ln L, on which the profile is centred.
    """

    law: JointLaw
    floor_interval: tuple[float, float]
    parameters_prefactor_interval: tuple[float, float]
    parameters_exponent_interval: tuple[float, float]
    data_prefactor_interval: tuple[float, float]
    data_exponent_interval: tuple[float, float]
    scatter: float
    points: int
    outliers: tuple[int, ...]
    misfit_p_value: float | None
    confidence: float
    unclear: tuple[str, ...]
    profile: JointProfile
    centres: tuple[float, float, float]

    def __repr__(self) -> str:
        named = zip(("E", "A", "a", "B", "b"), JointLaw._fields, strict=True)
        lines = [
            f"  {short} = {getattr(self.law, name):.4g} ({low:.4g} to {high:.4g})"
            for short, name in named
            for low, high in [getattr(self, f"{name}_interval")]
        ]
        used = f"{self.points - len(self.outliers)} of " if self.outliers else ""
        head = f"L = E + A N^-a + B D^-b, from {used}{self.points} losses that scatter by {self.scatter:.2%}"
        tested = (
            "too few runs to test the law" if self.misfit_p_value is None else f"misfit p = {self.misfit_p_value:.2g}"
        )
        return "\n".join([f"{head};", f"intervals of {self.confidence:.0%} ({tested}):", *lines, *self.unclear])

    def loss(self, parameters: PositiveNumbers, data: PositiveNumbers) -> ExpectedLoss:
        """Predict the loss at N and D, with a prediction interval for a further run.

        Args:
            parameters: N > 0, of any shape.
            data: D > 0, of a shape that broadcasts with that of the parameters.

        Raises:
            InputError: If a number is not positive, or the shapes do not broadcast.
        """
        found = self.law.loss(parameters, data)
        shape = np.shape(found)
        n, d = (np.broadcast_to(np.asarray(each, float), shape).ravel() for each in (parameters, data))
        low, high = np.empty((2, n.size))
        chance = self.profile.allowed(self.confidence) * self.scatter
        for k, value in enumerate(np.ravel(found)):
            ends = np.log(np.exp(self.centres[2]) / value) + self._interval(loss_at(self._centred(n[k], d[k])))
            width = np.hypot(ends, chance)
            low[k], high[k] = value * np.exp(-width[0]), value * np.exp(width[1])
        return ExpectedLoss(found, low.reshape(shape), high.reshape(shape))

    def split(self, compute: PositiveNumbers, *, cost: PositiveFloat = 6.0) -> Split:
        """Compute the optimal N* and D* for the given compute, using `JointLaw.split`."""
        return self.law.split(compute, cost=cost)

    @checked
    def split_intervals(self, compute: PositiveNumbers, *, cost: PositiveFloat = 6.0) -> SplitIntervals:
        """Compute the confidence intervals of the optimal split.

        Args:
            compute: C > 0, of any shape.
            cost: Compute per parameter and sample.

        Raises:
            InputError: If a number is not positive, or a term of the law does not fall.
        """
        self.split(compute, cost=cost)
        amounts = np.asarray(compute)
        sizes, losses = np.empty((2, amounts.size, 2))
        for k, amount in enumerate(amounts.ravel()):
            total = math.log(amount) - math.log(cost) - self.centres[0] - self.centres[1]
            sizes[k] = np.exp(self.centres[0] + self._interval(best_size(total)))
            losses[k] = np.exp(self.centres[2] + self._interval(best_loss(total)))
        (fewest, most), (low, high) = (np.moveaxis(each.reshape(*amounts.shape, 2), -1, 0) for each in (sizes, losses))
        exponents = np.clip(self._interval(best_exponent), 0.0, 1.0)
        with np.errstate(divide="ignore"):
            data = amounts / cost / most, amounts / cost / fewest
        return SplitIntervals((fewest, most), data, (low, high), (float(exponents[0]), float(exponents[1])))

    def isoflop(
        self, compute: PositiveFloat, parameters: PositiveNumbers | None = None, *, cost: PositiveFloat = 6.0
    ) -> IsoFlop:
        """Compute the losses of models of different sizes at equal compute, using `JointLaw.isoflop`."""
        return self.law.isoflop(compute, parameters, cost=cost)

    def _centred(self, parameters: float, data: float) -> tuple[float, float]:
        return math.log(parameters) - self.centres[0], math.log(data) - self.centres[1]

    def _interval(self, quantity: Quantity) -> np.ndarray:
        return np.array(self.profile.interval(quantity, self.confidence))


@checked
def fit_joint(
    parameters: PositiveNumbers, data: PositiveNumbers, losses: PositiveNumbers, *, confidence: OpenFraction = 0.95
) -> JointLawFit:
    """Fit L = E + A N^−a + B D^−b to the losses of runs with N parameters and D samples.

    The fit excludes outliers, that is, runs more than six standard deviations from a law fitted without them. Least
    trimmed squares and a forward search find the outliers, including failed runs at the edge of the design. A run that
    alone determines a coefficient of the law cannot be checked.

    The other runs are fitted with the Huber loss of ln L: quadratic for residuals up to 1.345 times their scatter, and
    linear above. The initial values come from a grid of exponents, with E, A and B fitted by linear least squares. Then
    all five coefficients are optimised under the constraint that none is negative. Approach 3 of Hoffmann et al. uses a
    threshold of 1e-3 instead, and thus nearly minimises the sum of absolute residuals.

    Confidence intervals are profile intervals: they contain the values of a coefficient that are compatible with the
    losses when all other coefficients are refitted. The intervals use Student's t with n − 5 degrees of freedom for n
    losses. Their coverage is correct if the law describes the losses, each loss is from a separate run, and the scatter
    is proportional to the loss. An F test of the curvature in ln N and ln D detects losses that the law does not
    describe; one valid fit in a hundred fails the F test by chance.

    Args:
        parameters: N > 0, broadcast to the shape of the losses, or one N per row for losses of shape (sizes, amounts).
        data: D > 0 in samples or tokens, broadcast to the shape of the losses, or one D per column.
        losses: L > 0 of at least eight runs, of any shape. Each seed counts as a run.
        confidence: Confidence level of the intervals, between 0 and 1.

    Returns:
        A `JointLawFit`, which `plan` accepts.

    Raises:
        InputError: If there are fewer than eight losses or fewer than three distinct N or D, if shapes do not
            broadcast, or if a number is out of range.

    Warns:
        OutlierWarning: If some runs contradict the law fitted to the others. The warning lists these runs, and both
            exponents with and without them.
        MisfitWarning: If the law does not describe the losses. The intervals are then too narrow, and the law must not
            be extrapolated.
        UserWarning: If the losses do not determine all terms, because N and D are proportional in all runs, because a
            term may be absent, or because the floor is unbounded.

    References:
        Hoffmann et al., arXiv:2203.15556; Besiroglu et al., arXiv:2404.10102, on the confidence intervals of Hoffmann
        et al.

    Example:
        >>> n, d = np.geomspace(1e6, 1e9, 6), np.geomspace(1e8, 1e11, 6)
        >>> found = fit_joint(n, d, 1.7 + 400 * n[:, None] ** -0.34 + 410 * d**-0.28)
        >>> print(f"{found.law.floor:.4f} {found.law.parameters_exponent:.4f} {found.law.data_exponent:.4f}")
        1.7000 0.3400 0.2800
        >>> print(f"{found.split(1e21).parameters:.3e}")
        1.783e+09
    """
    n, d, values = checked_runs(parameters, data, losses)
    scaled = Scaled.of(n, d, values)
    numbers, threshold = nearest_joint_law(scaled)
    outliers = outlying_runs(scaled, numbers)
    with_all = float(numbers[3]), float(numbers[4])
    if outliers.any():
        scaled = Scaled.of(*(each[~outliers] for each in (n, d, values)))
        numbers, threshold = nearest_joint_law(scaled)
    profile = JointProfile(scaled, numbers, threshold)
    of_n, of_d, of_loss = scaled.centres
    floor, a, b = (profile.interval(law_parameter(k), confidence) for k in (0, 3, 4))
    levels = [profile.interval(prefactor(k, centre), confidence) for k, centre in ((1, of_n), (2, of_d))]
    law = JointLaw(
        floor=float(numbers[0] * np.exp(of_loss)),
        parameters_prefactor=float(np.exp(of_loss + numbers[1] + numbers[3] * of_n)),
        parameters_exponent=float(numbers[3]),
        data_prefactor=float(np.exp(of_loss + numbers[2] + numbers[4] * of_d)),
        data_exponent=float(numbers[4]),
    )
    with np.errstate(over="ignore"):
        first, second = (tuple(np.exp(of_loss + np.array(each)).tolist()) for each in levels)
    found = JointLawFit(
        law=law,
        floor_interval=_above_zero(np.array(floor) * math.exp(of_loss)),
        parameters_prefactor_interval=first,
        parameters_exponent_interval=_above_zero(np.array(a)),
        data_prefactor_interval=second,
        data_exponent_interval=_above_zero(np.array(b)),
        scatter=profile.scatter,
        points=values.size,
        outliers=tuple(np.flatnonzero(outliers).tolist()),
        misfit_p_value=curvature_p_value(scaled, numbers, threshold),
        confidence=confidence,
        unclear=(),
        profile=profile,
        centres=scaled.centres,
    )
    issues: list[tuple[type[Warning], str]] = []
    if found.outliers:
        excess = values[outliers] / law.loss(n[outliers], d[outliers]) - 1
        exponents = list(zip(with_all, (law.parameters_exponent, law.data_exponent), strict=True))
        places, shape = np.flatnonzero(outliers), np.shape(losses)
        sentence = outlier_sentence("run", places, excess, shape, exponents, left_out=True)
        issues.append((OutlierWarning, sentence))
    if found.misfit_p_value is not None and found.misfit_p_value < UNLIKELY:
        issues.append((MisfitWarning, misfit_sentence(found.misfit_p_value, "it leaves curvature in ln N and ln D")))
    least = float(values[~outliers].min())
    issues += [(UserWarning, sentence) for sentence in _undetermined_terms(found, scaled, least)]
    for category, sentence in issues:
        warnings.warn(sentence, category, stacklevel=CALLER)
    return dataclasses.replace(found, unclear=tuple(sentence for _, sentence in issues))


def _undetermined_terms(found: JointLawFit, scaled: Scaled, least: float) -> tuple[str, ...]:
    """Describe the terms that the losses do not determine, each with a remedy."""
    sentences = []
    if abs(float(np.corrcoef(scaled.n, scaled.d)[0, 1])) > _TOGETHER:
        sentences.append(
            "N and D vary together in all runs, so the losses cannot separate their terms; vary N or D alone"
        )
    for of, resource in (("parameters", "N"), ("data", "D")):
        exponents, prefactors = (getattr(found, f"{of}_{name}_interval") for name in ("exponent", "prefactor"))
        if exponents[0] <= 0 or exponents[1] >= UPPER[3] or prefactors[0] <= 0:
            sentences.append(
                f"the losses do not determine the term in {resource}, whose exponent may be anywhere from "
                f"{exponents[0]:.3g} to {exponents[1]:.3g}; record more losses, or a wider range of {resource}"
            )
    low, high = found.floor_interval
    if low <= 0 and high > least / 2:
        sentences.append(
            f"the losses do not determine the floor, which may be anywhere from zero to {high:.3g} (the smallest "
            f"loss is {least:.3g}); add larger runs"
        )
    return tuple(sentences)


def _above_zero(ends: np.ndarray) -> tuple[float, float]:
    return max(float(ends[0]), 0.0), float(ends[1])
