"""Gradient flow of classifiers on separable data, parametrised by log(1/L) instead of time."""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Callable
from typing import Annotated, Any, Literal

import jax
import numpy as np
from annotated_types import Interval
from jaxtyping import Float
from numpy.typing import ArrayLike
from scipy.integrate import solve_ivp

from dynascope.errors import DivergenceError
from dynascope.flows.margin_problem import Loss, MarginProblem, signs_of
from dynascope.results.named_tuples import short_repr
from dynascope.symmetry.parameters import read
from dynascope.validation import checked, require, require_array, require_increasing
from dynascope.validation.bounded_scalars import PositiveInt

__all__ = ["MarginPath", "margin_flow"]

Solver = Literal["automatic", "implicit", "explicit"]

_MOST = 2000  # parameters and margins, the number of equations of an implicit step
_STUCK = 1e16  # ratio of 1/‖∇ν‖² to its smallest value on the path that indicates a minimum of the loss
_PATIENCE, _EACH = 5000, 3000  # evaluations, in total and per e-fold of ν, after which a path counts as non-smooth
_DRIFT = 1e-4  # largest relative error of log(1/L) in the implicit solution
_PARTS = 4  # quadrature points of the time in each step
_REMEDY = "give separable data, other initial parameters, or smaller levels"


@dataclasses.dataclass(frozen=True, eq=False)
class MarginPath:
    """A classifier at given levels of log(1/L).

    Attributes:
        level: Levels ν = log(1/L).
        margins: Margin q of each sample, or of each sample and wrong class.
        parameters: Flat parameters θ, in the order of `theory.margins.quasi_homogeneity`.
        solver: The solver used.
        normalised_time: Time s of the flow dθ/ds = −∇ log L.
        log_time: Logarithm of the gradient-flow time t since the initialisation; t itself would soon overflow.
        paths: Path and shape of each parameter array.
        start: The tree of initial parameters.
    """

    level: Float[np.ndarray, " levels"]
    margins: Float[np.ndarray, "levels samples"]
    parameters: Float[np.ndarray, "levels elements"]
    solver: Literal["implicit", "explicit"]
    normalised_time: Float[np.ndarray, " levels"]
    log_time: Float[np.ndarray, " levels"]
    paths: dict[str, tuple[int, ...]]
    start: Any

    __repr__ = short_repr

    @property
    def smallest_margin(self) -> np.ndarray:
        """Smallest margin q_min at each level."""
        return self.margins.min(axis=1)

    def params(self, place: int = -1) -> Any:
        """Return the tree of parameters at a level, in the precision of the initial parameters.

        Args:
            place: Index of the level; the last level by default.
        """
        ends = np.cumsum([math.prod(shape) for shape in self.paths.values()])
        rows = dict(zip(self.paths, np.split(self.parameters[place], ends[:-1]), strict=True))

        def put(path: Any, leaf: Any) -> Any:
            name = jax.tree_util.keystr(path)
            return np.asarray(rows[name].reshape(self.paths[name]), leaf.dtype) if name in self.paths else leaf

        return jax.tree_util.tree_map_with_path(put, self.start)


@checked
def margin_flow(
    apply: Callable[[Any, Any], Any],
    params: Any,
    inputs: Any,
    labels: ArrayLike,
    *,
    levels: ArrayLike = (10.0, 100.0, 1000.0, 10_000.0),
    loss: Loss = "exponential",
    solver: Solver = "automatic",
    relative_tolerance: Annotated[float, Interval(gt=0, lt=1e-2)] = 1e-8,
    max_evaluations: PositiveInt = 1_000_000,
) -> MarginPath:
    """Solve gradient flow on L = Σ exp(−q) up to arbitrarily large levels ν = log(1/L).

        dθ/dν = ∇ν/‖∇ν‖²

    The trajectory is that of gradient flow, but the time variable is different. Reaching ν takes the gradient-flow time
    t ≈ exp(ν). In normalised time, networks with more than two layers reach infinite margins at a finite time. Neither
    time is therefore a suitable integration variable. The solver integrates θ, and q − ν of every sample, with asinh ν
    as the time variable. The weights of the samples are the softmax of ν − q, so nothing overflows, and differences
    between large margins keep full precision. The samples with the smallest margins make the equations stiff, so the
    steps are implicit. Directions converge as 1/ν.

    Args:
        apply: Function (params, inputs) → outputs, with one value per sample, or with one row per sample and one value
            per class. For an equinox module, use `lambda module, x: jax.vmap(module)(x)`.
        params: A tree whose floating-point arrays are the parameters. There may be at most 2000 parameters and margins
            in total.
        inputs: All samples, in the format of `apply`.
        labels: For a single output, y = ±1, with margins q_i = y_i f(x_i). For several outputs, classes numbered from
            0, with margins q_ic = f_y(x_i) − f_c(x_i) for all c ≠ y.
        levels: Increasing levels ν to record, up to 1e6 and beyond. The first level must exceed the initial log(1/L).
        loss: "exponential", or "cross_entropy" (logistic for one output), which has the same limit.
        solver: "implicit", for any level if the network is smooth along the trajectory; "explicit", small descent steps
            on log L, for levels up to about 1e4 and for ReLU networks whose kinks converge to samples; or "automatic",
            which uses "explicit" if "implicit" fails.
        relative_tolerance: Tolerance of each implicit step, relative to each parameter.
        max_evaluations: Maximum number of gradient evaluations.

    Raises:
        InputError: If the labels do not match the outputs, if a level is below the initial log(1/L), if there are too
            many parameters, or if `apply` cannot be called.
        DivergenceError: If the loss stops decreasing before the last level, for example because the data are not
            separable, or if the solver fails.

    References:
        Kunin, Yamamura, Ma, Ganguli, arXiv:2210.03820.

    Example:
        >>> path = margin_flow(lambda w, x: x @ w, np.zeros(2), np.array([[1.0, 0.2], [10.0, -1.0]]), [1, 1])
        >>> print((path.parameters[-1] / path.level[-1]).round(3))
        [0.962 0.192]
    """
    requested = require_array("levels", levels, (None,))
    require_increasing("levels", requested)
    model, (parameters, frozen, leaves) = read(apply, params, inputs)
    theta = np.concatenate([np.ravel(each) for each in parameters])
    signs = signs_of(model, parameters, frozen, leaves, labels)
    equations = theta.size + signs.shape[0] * signs.shape[1]
    require(
        equations <= _MOST,
        f"params and margins have {equations} entries in total, but at most {_MOST} are supported",
        argument="params",
        value=equations,
        remedy="give a smaller network, or fewer samples",
    )
    shapes = tuple(each.shape for each in parameters)
    problem = MarginProblem(model, shapes, loss, (frozen, leaves, signs))
    with jax.enable_x64(True):
        _require_first_level(problem, theta, requested)
        most, paths = max_evaluations, dict(zip(model.paths, shapes, strict=True))
        if solver != "explicit":
            try:
                found = _implicit(problem, theta, requested, relative_tolerance, most, patient=solver == "implicit")
            except _IntegrationError as error:
                if solver == "implicit" or error.minimum:
                    raise _failure(str(error), error.level, requested[-1]) from None
            else:
                return MarginPath(requested, *found, paths, params)
        passed, found = _explicit(problem, theta, requested, most)
        return MarginPath(passed, *found, paths, params)


# Margins, parameters, the solver and both times at the levels.
_Path = tuple[np.ndarray, np.ndarray, Literal["implicit", "explicit"], np.ndarray, np.ndarray]


class _IntegrationError(Exception):
    """Raised if the integration fails at a level because the gradient vanishes or the solver fails."""

    def __init__(self, problem: str, level: float, *, minimum: bool = False):
        super().__init__(problem)
        self.level, self.minimum = level, minimum


def _require_first_level(problem: MarginProblem, theta: np.ndarray, requested: np.ndarray) -> None:
    begin = problem.level(problem.margins(theta))
    require(
        np.isfinite(begin),
        "the initial loss is not finite",
        argument="params",
        value=begin,
        remedy="choose initial parameters of order one",
    )
    require(
        requested[0] > begin,
        f"the first level is {requested[0]:.6g}, but the initial log(1/L) is {begin:.6g}",
        argument="levels",
        value=float(requested[0]),
        remedy="give levels above the initial log(1/L)",
    )


def _implicit(
    problem: MarginProblem, theta: np.ndarray, requested: np.ndarray, tolerance: float, most: int, *, patient: bool
) -> _Path:
    """Integrate up to the levels with LSODA."""
    q = problem.margins(theta)
    begin = problem.level(q)
    slowest, count, reached = np.inf, 0, begin

    def velocity(y: float, state: np.ndarray) -> np.ndarray:
        nonlocal slowest, count, reached
        found, count = problem.velocity(y, state), count + 1
        pace = found[-1] / math.cosh(y)  # 1/‖∇ν‖²
        if not 0 < pace < _STUCK * slowest:
            raise _IntegrationError("the loss stopped decreasing", reached, minimum=True)
        if count > most or not (patient or count <= _PATIENCE + _EACH * (y - ends[0])):
            raise _IntegrationError(f"max_evaluations ({most}) was reached", reached)
        slowest, reached = min(slowest, pace), max(reached, math.sinh(y))
        return found

    start = np.concatenate([theta, np.ravel(q) - begin, [0.0]])
    ends = np.arcsinh([begin, requested[-1]])
    usual = np.concatenate([np.full(theta.size, np.sqrt(np.mean(theta**2)) or 1.0), np.ones(q.size), [1.0]])
    options = {"rtol": tolerance, "atol": tolerance * usual, "jac": problem.jacobian, "dense_output": True}
    found = solve_ivp(velocity, ends, start, "LSODA", **options)
    if not found.success or found.sol is None:
        raise _IntegrationError("the solver failed", reached)
    y = np.arcsinh(requested)
    states = found.sol(y).T
    rows = states[:, : theta.size]
    margins = [problem.margins(row) for row in rows]
    for each, level in zip(margins, requested, strict=True):
        drift = problem.level(each) - level
        if not abs(drift) <= _DRIFT * (1 + abs(level)):
            raise _IntegrationError(f"log(1/L) has an error of {drift:.3g}", level)
    clock = _log_time(problem, found.sol, found.t, y)
    return np.reshape(margins, (len(requested), -1)), rows, "implicit", states[:, -1], clock


def _explicit(problem: MarginProblem, theta: np.ndarray, requested: np.ndarray, most: int) -> tuple[np.ndarray, _Path]:
    """Integrate with descent steps; each returned level is the one just after a requested level was passed."""
    rows, levels, times, clock, passed, last = problem.descended(theta, requested, most)
    if int(passed) < len(requested):
        raise _failure(
            f"the loss stopped decreasing, or max_evaluations ({most}) was reached", float(last), requested[-1]
        )
    margins = np.reshape([problem.margins(row) for row in rows], (len(requested), -1))
    return levels, (margins, rows, "explicit", times, clock)


def _failure(problem: str, level: float, last: float) -> DivergenceError:
    return DivergenceError(
        f"{problem} at log(1/L) = {level:.4g}, before the last level {last:g}", time=float(level), remedy=_REMEDY
    )


def _log_time(problem: MarginProblem, path: Any, steps: np.ndarray, requested: np.ndarray) -> np.ndarray:
    """Compute log ∫ exp(ν)/‖∇ν‖² dν up to each level, with linear interpolation of 1/‖∇ν‖²."""
    parts = [np.linspace(a, b, _PARTS) for a, b in itertools.pairwise(steps)]
    grid = np.unique(np.concatenate([*parts, requested]))
    level = np.sinh(grid)
    pace = problem.paces(grid, path(grid).T) / np.cosh(grid)
    bend = np.diff(pace) / np.diff(level)
    # ∫ exp(v)(a + bv) dv = exp(v)(a + bv − b), divided by exp of the upper end.
    parts = pace[1:] - bend - np.exp(level[:-1] - level[1:]) * (pace[:-1] - bend)
    logs = level[1:] + np.log(np.maximum(parts, np.finfo(float).tiny))
    return np.logaddexp.accumulate(logs)[np.searchsorted(grid, requested) - 1]
