"""Outlier detection by least trimmed squares and a forward search."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float
from scipy.stats import t as student
from scipy.stats import theilslopes

from dynascope.theory.scaling_laws.descent import descend

__all__ = ["ROUNDING", "Family", "outlying_points", "scatter_trend"]

ROUNDING = 1e-6  # relative residual that rounding, single precision or an unconverged fit may leave

_PASSES = 2  # passes over the resources
_MOST = 500  # largest number of points in a regression, whose cost grows with their square
_TRIMMED = 0.25  # largest fraction of outliers that the first law tolerates
_SUBSETS, _SUBSET = 24, 10  # number of random subsets and points in each; most subsets contain no outlier
_ROUNDS, _BEST = 3, 4  # concentration steps for all subsets, and number of subsets that get twice as many more
_FALSE = 0.001  # probability of finding any outlier among normal residuals
_NEAREST = 6.0  # least distance of an outlier in standard deviations, because real scatter has heavy tails
_SINGULAR = 1e-12  # relative curvature of a direction that the other points do not determine


def scatter_trend(
    rest: Float[np.ndarray, " points"],
    resources: Sequence[Float[np.ndarray, " points"]],
    kept: Bool[np.ndarray, " points"] | None = None,
) -> Float[np.ndarray, " points"]:
    """Estimate the relative standard deviation of the losses, up to a factor, as a product of powers of the resources.

    The slopes of ln |residual| against ln of each resource are Theil–Sen estimates (medians of pairwise slopes), which
    tolerate 29 % outliers.
    """
    size = np.log(np.maximum(np.abs(rest), ROUNDING))
    some = np.flatnonzero(np.ones(size.size, bool) if kept is None else kept)
    some = np.random.default_rng(0).permutation(some)[:_MOST]
    trend = np.zeros(size.size)
    for _ in range(_PASSES):
        for resource in resources:
            with np.errstate(invalid="ignore"):  # SciPy's interval of the slope is invalid if many residuals are equal
                slope = theilslopes((size - trend)[some], resource[some])[0]
            trend += slope * resource
    return np.exp(trend - trend.mean())


class Family(NamedTuple):
    """A parametric family of laws, with the data to fit.

    Attributes:
        residuals: Function that returns, for several laws, ln(law) − ln L at all points and its derivatives with
            respect to the coefficients.
        start: Function that returns an initial law for the marked points.
        lower: Lower bounds of the coefficients.
        upper: Upper bounds of the coefficients.
        resources: ln of each resource; the scatter may be a power of each resource.
    """

    residuals: Callable[
        [Float[np.ndarray, "laws numbers"]],
        tuple[Float[np.ndarray, "laws points"], Float[np.ndarray, "laws points numbers"]],
    ]
    start: Callable[[Bool[np.ndarray, " points"]], Float[np.ndarray, " numbers"]]
    lower: Float[np.ndarray, " numbers"]
    upper: Float[np.ndarray, " numbers"]
    resources: tuple[Float[np.ndarray, " points"], ...]


def outlying_points(family: Family, law: Float[np.ndarray, " numbers"]) -> Bool[np.ndarray, " points"]:
    """Mark the points whose losses contradict the law fitted to the others.

    The first law is fitted to the three quarters of the points with the smallest sum of squares (least trimmed squares,
    by concentration steps from random subsets). Then the function adds the nearest other points and refits the law,
    until all remaining points are too far away. A point is too far away if its distance exceeds both six standard
    deviations and the quantile of Student's t distribution. The standard deviation combines the scatter, which may grow
    with a resource, and the error of the law at the point. Outliers at the edge of the design are also found, because
    the law is fitted without them. A point that alone determines a coefficient of the law is never marked.

    References:
        Rousseeuw & Van Driessen, Data Min. Knowl. Discov. 12, 29 (2006), for concentration steps; Hadi & Simonoff,
        J. Am. Stat. Assoc. 88, 1264 (1993), for the forward search.
    """
    points = family.resources[0].size
    kept = _least_trimmed(family, law)
    law = law[None]
    while not kept.all():
        law, squares = _fitted(family, law, kept[None], 1e-8)
        rest, slopes = (each[0] for each in family.residuals(law))
        freedom = int(kept.sum()) - law.size
        trend = scatter_trend(rest, family.resources, kept)
        # The trend may only widen the tolerance: its estimation error would make a tighter one unreliable.
        wider = np.maximum(trend / np.sqrt(np.mean(trend[kept] ** 2)), 1.0)
        scatter = max(float(np.sqrt(squares[0] / freedom)), ROUNDING)
        curvatures, axes = np.linalg.eigh(slopes[kept].T @ slopes[kept])
        leverage = (slopes @ axes) ** 2 @ (1 / np.maximum(curvatures, _SINGULAR * curvatures[-1]))
        distance = np.abs(rest) / (scatter * wider * np.sqrt(1 + leverage))
        allowed = max(_NEAREST, float(student.isf(_FALSE / 2 / points, freedom)))
        near = np.flatnonzero(~kept & (distance <= allowed))
        if near.size == 0:
            break
        kept[near[np.argsort(distance[near])][: (near.size + 1) // 2]] = True
    return ~kept


def _least_trimmed(family: Family, law: Float[np.ndarray, " numbers"]) -> Bool[np.ndarray, " points"]:
    """Mark the three quarters of the points with the smallest sum of squares about a common law."""
    points = family.resources[0].size
    half = points - int(_TRIMMED * points)
    draw = np.random.default_rng(0)
    chosen = np.array([draw.permutation(points) < min(_SUBSET, half) for _ in range(_SUBSETS)])
    laws = np.array([law, *(family.start(rows) for rows in chosen)])
    kept = np.vstack([np.ones((1, points), bool), chosen])
    for rounds, precision in ((_ROUNDS, 1e-2), (2 * _ROUNDS, 1e-6)):
        for _ in range(rounds):
            laws, _ = _fitted(family, laws, kept, precision)
            distance = np.abs(family.residuals(laws)[0])
            order = np.argsort(distance, axis=1)[:, :half]
            kept = np.zeros_like(distance, bool)
            np.put_along_axis(kept, order, True, axis=1)
        best = np.argsort(np.sum(np.where(kept, distance, 0.0) ** 2, axis=1))[:_BEST]
        laws, kept = laws[best], kept[best]
    return kept[0]


def _fitted(
    family: Family,
    start: Float[np.ndarray, "laws numbers"],
    kept: Bool[np.ndarray, "laws points"],
    precision: float,
) -> tuple[Float[np.ndarray, "laws numbers"], Float[np.ndarray, " laws"]]:
    """Fit each law to its marked points by least squares of ln L; return the laws and sums of squares."""

    def residuals(laws: np.ndarray, _: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return family.residuals(laws)

    thresholds = np.where(kept, np.inf, 0.0)
    return descend(residuals, start, family.lower, family.upper, threshold=thresholds, precision=precision)
