"""Joint laws of parameters and data: `fit_joint` compared with SciPy's `curve_fit` and the procedure of Hoffmann et al.

Losses are drawn from L = 1.69 + 406.4 N^−0.34 + 410.7 D^−0.28 with independent scatter, and fitted by

- `fit_joint` of `theory.scaling_laws`;
- `scipy.optimize.curve_fit` of ln L, from the centre of the grid below, with intervals from its covariance and
  Student's t;
- approach 3 of Hoffmann et al. (arXiv:2203.15556), which minimises the sum of Huber losses of ln L with δ = 1e-3 by
  L-BFGS, from a grid of initial values. ln L is the log-sum-exp of the terms. The intervals come from a bootstrap of
  the losses, as in Besiroglu et al. (arXiv:2404.10102).

The quantities are the exponents, the floor, the optimal number of parameters for a thousand times the compute of the
largest run, and the loss there. For each one, the table contains the median of the estimates and half of their central
68 % range (scatter), both relative to the true value, and the coverage of the 95 % interval. The grid of initial values
has 4 × 4 × 3 × 3 × 3 points, of which the best twelve are optimised. This procedure is slow, so it has fewer draws and
only 50 bootstrap samples, each optimised from the estimate.

Run `python benchmarks/joint_law.py [--file FILE] [--only WORD …] [--draws NUMBER]`. Rows that are already in the file
are skipped.
"""

from __future__ import annotations

import argparse
import itertools
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np
from resumable import keep, rows
from scipy.optimize import OptimizeWarning, curve_fit, minimize
from scipy.special import logsumexp
from scipy.stats import t as student

from dynascope.theory.scaling_laws import JointLaw, fit_joint

FILE = Path(__file__).parent.parent / "docs" / "concepts" / "joint_law.csv"
COLUMNS = ("surface", "fitted by", "quantity", "draws", "median / truth", "scatter", "held the truth", "failed", "ms")
TRUTH = JointLaw(1.69, 406.4, 0.34, 410.7, 0.28)
NAMES = ("floor", "parameters exponent", "data exponent", "best parameters", "loss there")
AHEAD = 1e3  # times the compute of the largest run
DRAWS = 200
FEWER = {"Hoffmann et al.": 40}
BOOTSTRAPS = 50
DELTA = 1e-3
BEST = 12  # number of optimised initial values, those with the smallest error

Found = dict[str, tuple[float, tuple[float, float]]]


class Surface(NamedTuple):
    """A design: N and D of all runs, and the scatter of their losses."""

    name: str
    parameters: np.ndarray
    data: np.ndarray
    scatter: float
    outliers: float  # share of runs with ten times the scatter

    def drawn(self, seed: int) -> np.ndarray:
        """Return the losses of one draw."""
        draw = np.random.default_rng(seed)
        noise = draw.normal(size=self.data.size)
        noise[draw.random(noise.size) < self.outliers] *= 10
        return TRUTH.loss(self.parameters, self.data) * np.exp(self.scatter * noise)

    @property
    def compute(self) -> float:
        """The compute for which the optimal split is estimated."""
        return AHEAD * 6 * float(np.max(self.parameters * self.data))


def grid(name: str, sizes: int, decades: float, scatter: float, outliers: float = 0.0) -> Surface:
    n, d = np.geomspace(1e6, 10 ** (6 + decades), sizes), np.geomspace(1e8, 10 ** (8 + decades), sizes)
    first, second = (each.ravel() for each in np.meshgrid(n, d, indexing="ij"))
    return Surface(name, first, second, scatter, outliers)


def isoflops(name: str, scatter: float) -> Surface:
    """Return five sizes along each of six curves of equal compute."""
    compute = np.repeat(np.geomspace(6e16, 6e20, 6), 5)
    n = np.sqrt(compute / 6 / 20) * np.tile(np.geomspace(1 / 8, 8, 5), 6)
    return Surface(name, n, compute / 6 / n, scatter, 0.0)


SURFACES = [
    grid("7 × 7, three decades, 1 %", 7, 3, 0.01),
    grid("5 × 5, two decades, 1 %", 5, 2, 0.01),
    grid("7 × 7, three decades, 1 %, a tenth outliers", 7, 3, 0.01, 0.1),
    isoflops("30 runs at equal compute, 1 %", 0.01),
]


def truths(surface: Surface) -> dict[str, float]:
    best = TRUTH.split(surface.compute)
    values = TRUTH.floor, TRUTH.parameters_exponent, TRUTH.data_exponent, float(best.parameters), float(best.loss)
    return dict(zip(NAMES, values, strict=True))


def ours(surface: Surface, losses: np.ndarray) -> Found:
    found = fit_joint(surface.parameters, surface.data, losses)
    best, ends = found.split(surface.compute), found.split_intervals(surface.compute)
    intervals = (
        *(found.floor_interval, found.parameters_exponent_interval, found.data_exponent_interval),
        *((float(low), float(high)) for low, high in (ends.parameters, ends.loss)),
    )
    law = found.law
    values = law.floor, law.parameters_exponent, law.data_exponent, float(best.parameters), float(best.loss)
    return dict(zip(NAMES, zip(values, intervals, strict=True), strict=True))


def logarithm(x: tuple[np.ndarray, np.ndarray], e: float, a: float, b: float, alpha: float, beta: float) -> np.ndarray:
    """Return ln L; e, a and b are the logarithms of the floor and of the prefactors."""
    terms = [np.full_like(x[0], e), a - alpha * np.log(x[0]), b - beta * np.log(x[1])]
    return np.asarray(logsumexp(terms, axis=0))


def quantities(surface: Surface, numbers: np.ndarray) -> np.ndarray:
    e, a, b, alpha, beta = numbers
    law = JointLaw(float(np.exp(e)), float(np.exp(a)), float(alpha), float(np.exp(b)), float(beta))
    best = law.split(surface.compute)
    return np.array([law.floor, alpha, beta, best.parameters, best.loss])


def by_curve_fit(surface: Surface, losses: np.ndarray) -> Found:
    x = surface.parameters, surface.data
    numbers, covariance = curve_fit(logarithm, x, np.log(losses), p0=[0.0, 10.0, 10.0, 0.5, 0.5], maxfev=5000)
    values = quantities(surface, numbers)
    steps = 1e-6 * np.maximum(np.abs(numbers), 1.0) * np.eye(5)
    slopes = np.array([(quantities(surface, numbers + step) - values) / step.sum() for step in steps]).T
    errors = student.ppf(0.975, losses.size - 5) * np.sqrt(np.diag(slopes @ covariance @ slopes.T))
    ends = zip(values - errors, values + errors, strict=True)
    return dict(zip(NAMES, zip(values, ends, strict=True), strict=True))


def descended(n: np.ndarray, d: np.ndarray, y: np.ndarray, starts: np.ndarray, steps: int) -> tuple[np.ndarray, float]:
    """Return the minimum of the sum of Huber losses that L-BFGS reaches from the initial values.

    Losses are in units of δ², so that L-BFGS does not stop early.
    """

    def loss(numbers: np.ndarray) -> tuple[float, np.ndarray]:
        e, a, b, alpha, beta = numbers
        terms = np.array([np.full_like(n, e), a - alpha * n, b - beta * d])
        whole = np.asarray(logsumexp(terms, axis=0))
        rest = whole - y
        rest /= DELTA
        bent = np.clip(rest, -1, 1)
        shares = np.exp(terms - whole) * bent / DELTA
        slopes = np.array([*shares.sum(axis=1), -(shares[1] @ n), -(shares[2] @ d)])
        return float(np.sum(bent * (rest - bent / 2))), slopes

    found = [minimize(loss, start, jac=True, method="L-BFGS-B", options={"maxiter": steps}) for start in starts]
    best = min(found, key=lambda each: each.fun)
    return best.x, float(best.fun)


def by_hoffmann(surface: Surface, losses: np.ndarray) -> Found:
    n, d, y = np.log(surface.parameters), np.log(surface.data), np.log(losses)
    places = np.array(
        list(itertools.product((-1.0, 0.0, 1.0), (0.0, 5, 10, 20), (0.0, 5, 10, 20), (0.2, 0.5, 1.0), (0.2, 0.5, 1.0)))
    )
    heights = [np.sum(np.abs(logarithm((surface.parameters, surface.data), *place) - y)) for place in places]
    numbers, _ = descended(n, d, y, places[np.argsort(heights)[:BEST]], 1000)
    values, draw = quantities(surface, numbers), np.random.default_rng(0)
    again = []
    for _ in range(BOOTSTRAPS):
        kept = draw.integers(y.size, size=y.size)
        again.append(quantities(surface, descended(n[kept], d[kept], y[kept], numbers[None], 200)[0]))
    ends = zip(*np.percentile(again, [2.5, 97.5], axis=0), strict=True)
    return dict(zip(NAMES, zip(values, ends, strict=True), strict=True))


WAYS: dict[str, Callable[[Surface, np.ndarray], Found]] = {
    "fit_joint": ours,
    "curve_fit": by_curve_fit,
    "Hoffmann et al.": by_hoffmann,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=str(__doc__).partition("\n")[0])
    parser.add_argument("--file", type=Path, default=FILE)
    parser.add_argument("--only", nargs="*", default=[])
    parser.add_argument("--draws", type=int, default=DRAWS)
    options = parser.parse_args()
    kept = {(row["surface"], row["fitted by"]) for row in rows(options.file)}
    for surface, way in itertools.product(SURFACES, WAYS):
        if (surface.name, way) not in kept and all(word in f"{surface.name}, {way}" for word in options.only):
            compare(options.file, surface, way, min(options.draws, FEWER.get(way, options.draws)))


def compare(file: Path, surface: Surface, way: str, draws: int) -> None:
    """Append the rows of one method on one surface to the file."""
    found, failed, start = [], 0, time.process_time()
    for seed in range(draws):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            warnings.simplefilter("ignore", OptimizeWarning)
            warnings.simplefilter("ignore", RuntimeWarning)
            try:
                found.append(WAYS[way](surface, surface.drawn(seed)))
            except (RuntimeError, ValueError):
                failed += 1
    spent = (time.process_time() - start) / draws
    for name, truth in truths(surface).items():
        estimates = np.array([each[name][0] for each in found])
        held = np.mean([each[name][1][0] <= truth <= each[name][1][1] for each in found])
        row = {
            "surface": surface.name,
            "fitted by": way,
            "quantity": name,
            "draws": draws,
            "median / truth": f"{np.median(estimates) / truth:.3f}",
            "scatter": f"{np.subtract(*np.percentile(estimates, [84, 16])) / 2 / truth:.1%}",
            "held the truth": f"{held:.0%}",
            "failed": f"{failed / draws:.0%}",
            "ms": f"{1e3 * spent:.0f}",
        }
        keep(file, row, COLUMNS)


if __name__ == "__main__":
    main()
