"""Gradient flow of a classifier long past separation, followed by the margin instead of by time."""

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

_MOST = 2000  # numbers: implicit steps solve as many equations
_STUCK = 1e16  # 1/‖∇ν‖² over the least of the path where it is a minimum
_PATIENCE, _EACH = 5000, 3000  # evaluations, and more for each factor e of ν, after which a path is taken to have kinks
_DRIFT = 1e-4  # by how much log(1/L) may be off, relative, before the solver has lost the path
_PARTS = 4  # points in each step at which the speed is read for the time
_REMEDY = "give data that the network can separate from this start, another start, or smaller levels"


@dataclasses.dataclass(frozen=True, eq=False)
class MarginPath:
    """A classifier at chosen levels of its loss.

    Attributes:
        level: ν = log(1/L).
        margins: q of each sample, or of each sample and other class.
        parameters: θ in a row, in the order of `theory.margins.quasi_homogeneity`.
        solver: By which it was followed.
        normalised_time: s of dθ/ds = −∇ log L.
        log_time: log t of gradient flow on L itself, from the start on; times are soon beyond floating-point numbers.
        paths: Path and shape of each array in the row.
        start: The tree that was started from.
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
        """q_min at each level."""
        return self.margins.min(axis=1)

    def params(self, place: int = -1) -> Any:
        """The tree of parameters at a level, in the precision of the start.

        Args:
            place: Number of the level; the last by default.
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
    """Gradient flow on L = Σ exp(−q), at given ν = log(1/L), however large: dθ/dν = ∇ν/‖∇ν‖².

    The orbit is that of gradient flow, and so is the order of what happens on it; only the clock is another one. By the
    time t it would take t ≈ exp(ν) to reach ν, and even in normalised time networks of more than two layers reach all
    margins at once. The equations are of asinh ν, for θ and for q − ν of every sample, of which the softmax weighs the
    forces: nothing overflows, and differences of large margins lose no digits. Steps are implicit where samples at the
    margin pull faster than it grows. Directions approach their limit as 1/ν.

    Args:
        apply: (params, inputs) → outputs: one for each sample, or a row of one for each class; of an equinox module
            with `lambda module, x: jax.vmap(module)(x)`.
        params: A tree; its arrays of floating-point numbers are the parameters, at most 2000 with the margins.
        inputs: All samples, as `apply` takes them.
        labels: y = ±1 where there is one output, q_i = y_i f(x_i); classes from zero where there are several, q_ic =
            f_y(x_i) − f_c(x_i) for all c ≠ y.
        levels: ν at which to record, increasing, up to 1e6 and beyond; the first above that of the start.
        loss: "exponential", or "cross_entropy" (logistic for one output), which has the same limit.
        solver: "implicit" up to any level where the network is smooth along the path; "explicit", steps of descent on
            log L by which ν grows a little, where units of ReLU come to rest at samples, to levels of 1e4 or so;
            "automatic" for the second where the first does not get through.
        relative_tolerance: Of each implicit step, relative to each parameter.
        max_evaluations: Number of gradients after which the flow is given up.

    Raises:
        InputError: Labels that do not fit the outputs, levels below the start, too many parameters, or an `apply` that
            cannot be called.
        DivergenceError: The loss stops falling before the last level, as of data that are not separated, or the solver
            cannot go on.

    References:
        Kunin, Yamamura, Ma, Ganguli, arXiv:2210.03820.

    Example:
        >>> path = margin_flow(lambda w, x: x @ w, np.zeros(2), np.array([[1.0, 0.2], [10.0, -1.0]]), [1, 1])
        >>> print((path.parameters[-1] / path.level[-1]).round(3))
        [0.962 0.192]
    """
    wanted = require_array("levels", levels, (None,))
    require_increasing("levels", wanted)
    model, (parameters, frozen, leaves) = read(apply, params, inputs)
    theta = np.concatenate([np.ravel(each) for each in parameters])
    signs = signs_of(model, parameters, frozen, leaves, labels)
    equations = theta.size + signs.shape[0] * signs.shape[1]
    require(
        equations <= _MOST,
        f"params and margins are {equations} numbers, and {_MOST} are the most",
        argument="params",
        value=equations,
        remedy="give a smaller network, or fewer samples",
    )
    shapes = tuple(each.shape for each in parameters)
    problem = MarginProblem(model, shapes, loss, (frozen, leaves, signs))
    with jax.enable_x64(True):
        _require_start(problem, theta, wanted)
        most, paths = max_evaluations, dict(zip(model.paths, shapes, strict=True))
        if solver != "explicit":
            try:
                found = _implicit(problem, theta, wanted, relative_tolerance, most, patient=solver == "implicit")
            except _LostError as lost:
                if solver == "implicit" or lost.minimum:
                    raise _given_up(str(lost), lost.level, wanted[-1]) from None
            else:
                return MarginPath(wanted, *found, paths, params)
        passed, found = _explicit(problem, theta, wanted, most)
        return MarginPath(passed, *found, paths, params)


# Margins, parameters, the solver and both clocks at the levels.
_Followed = tuple[np.ndarray, np.ndarray, Literal["implicit", "explicit"], np.ndarray, np.ndarray]


class _LostError(Exception):
    """The path could not be followed past a level, as the slope has vanished there or the solver cannot go on."""

    def __init__(self, problem: str, level: float, *, minimum: bool = False):
        super().__init__(problem)
        self.level, self.minimum = level, minimum


def _require_start(problem: MarginProblem, theta: np.ndarray, wanted: np.ndarray) -> None:
    begin = problem.level(problem.margins(theta))
    require(
        np.isfinite(begin),
        "the loss is not finite at the start",
        argument="params",
        value=begin,
        remedy="give parameters of order one",
    )
    require(
        wanted[0] > begin,
        f"levels begins at {wanted[0]:.6g}, and log(1/L) is {begin:.6g} at the start",
        argument="levels",
        value=float(wanted[0]),
        remedy="give levels above that of the start",
    )


def _implicit(
    problem: MarginProblem, theta: np.ndarray, wanted: np.ndarray, tolerance: float, most: int, *, patient: bool
) -> _Followed:
    """The path at the levels, by the solver of LSODA."""
    q = problem.margins(theta)
    begin = problem.level(q)
    slowest, count, reached = np.inf, 0, begin

    def velocity(y: float, state: np.ndarray) -> np.ndarray:
        nonlocal slowest, count, reached
        found, count = problem.velocity(y, state), count + 1
        pace = found[-1] / math.cosh(y)  # 1/‖∇ν‖²
        if not 0 < pace < _STUCK * slowest:
            raise _LostError("the loss stops falling", reached, minimum=True)
        if count > most or not (patient or count <= _PATIENCE + _EACH * (y - ends[0])):
            raise _LostError(f"max_evaluations ({most}) are used up", reached)
        slowest, reached = min(slowest, pace), max(reached, math.sinh(y))
        return found

    start = np.concatenate([theta, np.ravel(q) - begin, [0.0]])
    ends = np.arcsinh([begin, wanted[-1]])
    usual = np.concatenate([np.full(theta.size, np.sqrt(np.mean(theta**2)) or 1.0), np.ones(q.size), [1.0]])
    options = {"rtol": tolerance, "atol": tolerance * usual, "jac": problem.jacobian, "dense_output": True}
    found = solve_ivp(velocity, ends, start, "LSODA", **options)
    if not found.success or found.sol is None:
        raise _LostError("the solver cannot go on", reached)
    y = np.arcsinh(wanted)
    states = found.sol(y).T
    rows = states[:, : theta.size]
    margins = [problem.margins(row) for row in rows]
    for each, level in zip(margins, wanted, strict=True):
        drift = problem.level(each) - level
        if not abs(drift) <= _DRIFT * (1 + abs(level)):
            raise _LostError(f"log(1/L) is off by {drift:.3g}", level)
    clock = _log_time(problem, found.sol, found.t, y)
    return np.reshape(margins, (len(wanted), -1)), rows, "implicit", states[:, -1], clock


def _explicit(problem: MarginProblem, theta: np.ndarray, wanted: np.ndarray, most: int) -> tuple[np.ndarray, _Followed]:
    """The levels just after each was passed by steps of descent, and the path there."""
    rows, levels, times, clock, passed, last = problem.descended(theta, wanted, most)
    if int(passed) < len(wanted):
        raise _given_up(
            f"the loss has stopped falling, or max_evaluations ({most}) are used up", float(last), wanted[-1]
        )
    margins = np.reshape([problem.margins(row) for row in rows], (len(wanted), -1))
    return levels, (margins, rows, "explicit", times, clock)


def _given_up(problem: str, level: float, last: float) -> DivergenceError:
    told = f"{problem} at log(1/L) = {level:.4g}, short of {last:g}"
    return DivergenceError(told, time=float(level), remedy=_REMEDY)


def _log_time(problem: MarginProblem, path: Any, steps: np.ndarray, wanted: np.ndarray) -> np.ndarray:
    """The log of ∫ exp(ν)/‖∇ν‖² dν up to each level, with 1/‖∇ν‖² a straight line between points of the steps."""
    parts = [np.linspace(a, b, _PARTS) for a, b in itertools.pairwise(steps)]
    grid = np.unique(np.concatenate([*parts, wanted]))
    level = np.sinh(grid)
    pace = problem.paces(grid, path(grid).T) / np.cosh(grid)
    bend = np.diff(pace) / np.diff(level)
    # ∫ exp(v)(a + bv) = exp(v)(a + bv − b), over exp of the upper end.
    parts = pace[1:] - bend - np.exp(level[:-1] - level[1:]) * (pace[:-1] - bend)
    logs = level[1:] + np.log(np.maximum(parts, np.finfo(float).tiny))
    return np.logaddexp.accumulate(logs)[np.searchsorted(grid, wanted) - 1]
