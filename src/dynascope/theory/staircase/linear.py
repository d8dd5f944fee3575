"""Loss staircases of two-layer linear networks by greedy low-rank learning."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator

import numpy as np
from annotated_types import IsFinite
from jaxtyping import Float

from dynascope.errors import InputError
from dynascope.results import staircase_names as names
from dynascope.results.staircase import Staircase
from dynascope.theory.assumptions import ENOUGH_NEURONS, SEPARATED_TIMES, SMALL_START
from dynascope.theory.domain import covers
from dynascope.theory.papers import ALTERNATING
from dynascope.theory.staircase.bundles import Bundles
from dynascope.theory.staircase.settling import main_maps, settling_times
from dynascope.validation import require, require_shape
from dynascope.validation.bounded import OpenFraction, PositiveFloat

__all__ = ["linear_staircase"]

_GENERAL = "greedy low-rank learning"
_COMMUTING = "greedy low-rank learning, independent modes"
_REFERENCE = (
    "Z. Li, Y. Luo, K. Lyu, Towards resolving the implicit bias of gradient descent for matrix factorization: greedy "
    f"low-rank learning (arXiv 2012.09839); {ALTERNATING}"
)
# Relative singular values and commutators below this size are rounding errors of the moments.
_ROUND_OFF = 1e-8
# If the coupling of the modes is weaker, they follow the order of independent modes for a visible time.
_NEARLY_INDEPENDENT = 1e-2
# Larger neurons contribute to the function before the first plateau.
_SMALL_START = 0.1
# A mode that alone explains less than half of the drop reaches the middle of the drop only after its direction has
# turned. The time is then estimated from the growth of the mode up to this fraction of its limit.
_LARGEST_SHARE = 0.95


@covers(
    network="two-layer linear, any widths",
    data="any",
    start="small, of any distribution",
    gives="times, levels and features of all jumps",
    reference="arXiv:2012.09839; arXiv:2506.06489",
    exact=False,
    assumes=(SMALL_START, SEPARATED_TIMES, ENOUGH_NEURONS),
)
def linear_staircase(
    cross_moment: IsFinite[Float[np.ndarray, "c d"]],
    input_moment: IsFinite[Float[np.ndarray, "d d"]],
    target_power: PositiveFloat,
    *,
    scale: OpenFraction,
    first: IsFinite[Float[np.ndarray, "d width"]] | None = None,
    second: IsFinite[Float[np.ndarray, "width c"]] | None = None,
) -> Staircase:
    """Predict the loss staircase (plateaus and jumps) of f(x) = x W₁ W₂ under gradient flow from small generic weights.

    Let s_j and u_j be the singular values and left singular vectors of Σyx Σxx^(−1/2), and P_k the projector on the
    first k of the u_j. The network visits the reduced-rank regressions P_k Σyx Σxx⁻¹, with loss

        L_k = ½ (tr Σyy − Σ_{j≤k} s_j²).

    On plateau k, the remaining directions grow at the rates σ_j(M_k), the singular values of M_k = (I − P_k) Σyx. The
    log-amplitudes of these directions start at −1 (in units of log(1/scale)) and keep their order; a jump occurs when
    the largest reaches zero. If Σyxᵀ Σyx and Σxx commute, the modes are independent instead. Independent modes are
    learned in the order of the singular values σ_k of Σyx, at times 1/σ_k, and each lowers the loss by σ_k²/(2λ_k),
    with λ_k = v_kᵀ Σxx v_k.

    If initial weights are given, they determine the jump times at this scale: the function propagates bundles of
    neurons exactly through each plateau, and each drop is the logistic growth of its mode. Otherwise, the times are the
    accelerated times multiplied by log(1/scale).

    Args:
        cross_moment: Σyx = E[y xᵀ], shape (c, d).
        input_moment: Σxx = E[x xᵀ], positive semidefinite, shape (d, d). If it is singular, the theory is applied on
            its range.
        target_power: tr Σyy = E‖y‖² > 0.
        scale: Factor α of the initial weights, between 0 and 1.
        first: W₁ at scale one, shape (d, width).
        second: W₂ at scale one, shape (width, c).

    Returns:
        The staircase. Its feature `output_feature` is the unit vector u_k. `input_feature` is the unit vector v_k that
        grows on the preceding plateau, the first right singular vector of M_{k−1}. `learned_map` is the map that the
        jump adds, u_kᵀ (W_k − W_{k−1}), and `main_map` is the part of this map that causes most of the drop.
        `singular_value` is s_k, or σ_k for independent modes. `settling_time` is the time after the jump during which
        the loss remains visibly above the plateau, because inputs of small variance are learned slowly.

    Raises:
        InputError: If the shapes do not match, no data have the given moments, the inputs explain none of the targets,
            the scale is out of range, or the initial weights are zero.

    Assumptions: generic initial weights (a component along every mode) and distinct singular values. Levels are exact
    in the limit scale → 0. The times grow as log(1/scale), but their error in gradient-flow time is bounded.

    Source: greedy low-rank learning, arXiv 2012.09839, for the plateaus; Alternating Gradient Flows, arXiv:2506.06489,
    for the growth of neurons between them. The order of the remaining directions and the times from given initial
    weights are derived here.

    Example:
        >>> steps = linear_staircase(np.diag([2.0, 0.5]), np.eye(2), 4.25, scale=1e-6)
        >>> steps.accelerated_times, steps.levels
        (array([0.5, 2. ]), array([2.125, 0.125, 0.   ]))
    """
    dimension = cross_moment.shape[1]
    require_shape("input_moment", input_moment, (dimension, dimension))
    problem = _on_the_range(cross_moment, input_moment)
    neurons = _neurons(first, second, problem)
    jumps = None if neurons is None else _independent_neurons(neurons)
    modes = _independent_modes(problem, jumps)
    independent = modes.coupling <= _ROUND_OFF
    if not independent:
        modes = _coupled_modes(problem, jumps, modes.coupling)
    levels = target_power / 2 - np.concatenate([[0.0], np.cumsum(modes.drops)])
    require(
        levels[-1] >= -1e-9 * target_power,
        f"the inputs explain {2 * modes.drops.sum():.6g} of the target power, but target_power is {target_power:.6g}",
        argument="target_power",
        value=target_power,
        remedy="compute all moments from the same data",
    )
    log_scale = float(np.log(scale))
    if neurons is None:
        times = -log_scale * modes.accelerated_times
    elif independent:
        times = _times_independent(modes, neurons, log_scale)
    else:
        times = _times_general(problem, modes, neurons, log_scale)
    course = {each: getattr(modes, each) for each in ("drops", "rates", "right", "maps")} | {"power": problem.power}
    settling = settling_times(**course, times=times, initial_loss=target_power / 2)
    return Staircase(
        accelerated_times=modes.accelerated_times,
        times=times,
        levels=np.maximum(levels, 0.0),
        learned=tuple(f"rank {k + 1} (s = {value:.3g})" for k, value in enumerate(modes.values)),
        slow=("",) * len(times),
        features={
            "output_feature": (("jump", "target"), modes.left.T),
            "input_feature": (("jump", "feature"), modes.right.T @ problem.basis.T),
            "learned_map": (("jump", "feature"), modes.maps @ problem.basis.T),
            "main_map": (("jump", "feature"), main_maps(**course) @ problem.basis.T),
            "singular_value": (("jump",), modes.values),
            names.SETTLING_TIME: (("jump",), settling),
        },
        theory=_COMMUTING if independent else _GENERAL,
        reference=_REFERENCE,
        warnings=tuple(_warnings(modes, times, neurons, scale)),
    )


@dataclasses.dataclass(frozen=True)
class _Problem:
    """Moments in the eigenbasis of Σxx on its range: `cross` (c, r), eigenvalues `power` (r,) and `basis` (d, r)."""

    cross: np.ndarray
    power: np.ndarray
    basis: np.ndarray


@dataclasses.dataclass(frozen=True)
class _Modes:
    """Modes in the order of learning, with the arrays `left` (c, J), `right` (r, J) and `maps` (J, r)."""

    accelerated_times: np.ndarray
    drops: np.ndarray
    values: np.ndarray
    rates: np.ndarray
    left: np.ndarray
    right: np.ndarray
    maps: np.ndarray
    coupling: float


def _neurons(first, second, problem: _Problem) -> np.ndarray | None:
    """Return one column (input weights on the range of Σxx, output weights) per neuron."""
    if first is None and second is None:
        return None
    if first is None or second is None:
        raise InputError(
            "the initial weights of only one layer are given",
            argument="second" if second is None else "first",
            remedy="give first and second, or neither",
        )
    require_shape("first", first, (len(problem.basis), None))
    require_shape("second", second, (first.shape[1], len(problem.cross)))
    neurons = np.concatenate([problem.basis.T @ first, second.T])
    require(
        bool(np.any(neurons)),
        "the initial weights are zero",
        argument="first",
        value=0.0,
        remedy="give random initial weights",
    )
    return neurons


def _independent_neurons(neurons: np.ndarray) -> int:
    """Number of modes that the neurons can learn; identical neurons stay identical and count once."""
    norms = np.linalg.norm(neurons, axis=0)
    return int(np.linalg.matrix_rank(neurons[:, norms > 0] / norms[norms > 0]))


def _on_the_range(cross: np.ndarray, moment: np.ndarray) -> _Problem:
    power, vectors = np.linalg.eigh((moment + moment.T) / 2)
    kept = power > 1e-12 * max(power[-1], 0.0)
    require(
        power[-1] > 0 and power[0] >= -_ROUND_OFF * power[-1],
        f"input_moment has eigenvalues from {power[0]:.3g} to {power[-1]:.3g}",
        argument="input_moment",
        value=float(power[0]),
        remedy="pass a second moment E[x xᵀ], which is positive semidefinite and not zero",
    )
    rotated = cross @ vectors
    outside = np.linalg.norm(rotated[:, ~kept]) if not kept.all() else 0.0
    require(
        np.any(cross != 0) and outside <= 1e-6 * np.linalg.norm(cross),
        "cross_moment is zero or outside the range of input_moment",
        argument="cross_moment",
        value=float(np.linalg.norm(cross)),
        remedy="pass targets that vary with the inputs",
    )
    return _Problem(rotated[:, kept], power[kept], vectors[:, kept])


def _coupled_modes(problem: _Problem, jumps: int | None, coupling: float) -> _Modes:
    left, values, _ = np.linalg.svd(problem.cross / np.sqrt(problem.power), full_matrices=False)
    rank = int(np.sum(values > _ROUND_OFF * values[0]))
    jumps = min(rank, jumps or rank)
    left, values = left[:, :jumps] * _signs(left[:, :jumps]), values[:jumps]
    log_amplitudes, clock = -np.ones(rank), 0.0
    times, growth, right = [], [], []
    for k in range(jumps):
        columns, rates, rows = np.linalg.svd(_residual(problem, left[:, :k]), full_matrices=False)
        wait = -log_amplitudes[0] / rates[0]
        log_amplitudes = (log_amplitudes + rates[: rank - k] * wait)[1:]
        clock += wait
        times.append(clock)
        growth.append(rates[0])
        # The sign of v_k is chosen so that its output is along +u_k.
        right.append(rows[0] * np.copysign(1.0, left[:, k] @ columns[:, 0]))
    maps = left.T @ problem.cross / problem.power
    right = np.array(right).T
    return _Modes(np.array(times), values**2 / 2, values, np.array(growth), left, right, maps, coupling)


def _independent_modes(problem: _Problem, jumps: int | None) -> _Modes:
    left, values, rows = np.linalg.svd(problem.cross, full_matrices=False)
    rank = int(np.sum(values > _ROUND_OFF * values[0]))
    left, values, right = left[:, :rank], values[:rank], rows[:rank].T
    starts = np.flatnonzero(np.diff(values) < -_ROUND_OFF * values[0]) + 1
    for block in np.split(np.arange(rank), starts):
        # Any basis of a block of equal singular values is valid; use the one that diagonalises Σxx.
        _, turn = np.linalg.eigh(right[:, block].T @ (problem.power[:, None] * right[:, block]))
        right[:, block], left[:, block] = right[:, block] @ turn, left[:, block] @ turn
    signs = _signs(left)
    left, right = left * signs, right * signs
    images = problem.power[:, None] * right
    powers = np.sum(right * images, axis=0)
    coupling = float(np.linalg.norm(images - right * powers) / np.linalg.norm(problem.power))
    kept = slice(jumps)
    drops, maps = values**2 / (2 * powers), (right * values / powers).T
    values, left, right = values[kept], left[:, kept], right[:, kept]
    return _Modes(1 / values, drops[kept], values, values, left, right, maps[kept], coupling)


def _signs(left: np.ndarray) -> np.ndarray:
    """Signs that make the largest entry of each column positive, since the signs of singular vectors are arbitrary."""
    largest = np.abs(left).round(9).argmax(axis=0)
    return np.copysign(1.0, left[largest, np.arange(left.shape[1])])


def _residual(problem: _Problem, learned: np.ndarray) -> np.ndarray:
    return problem.cross - learned @ (learned.T @ problem.cross)


def _times_independent(modes: _Modes, neurons: np.ndarray, log_scale: float) -> np.ndarray:
    """Times at half of each drop of logistic modes, from the initial components orthogonal to all stronger modes."""
    directions = np.concatenate([modes.right, modes.left]) / np.sqrt(2)
    own = np.abs(np.diag(np.linalg.qr(neurons.T @ directions, mode="r")))
    # Strength p = q²/2 grows as p' = 2p(σ − λp), so p = limit/(1 + e^(log_odds − 2σt)).
    log_limit = np.log(2 * modes.drops / modes.values)
    with np.errstate(divide="ignore"):
        log_amplitudes = log_scale + np.log(own)
    log_odds = _log_odds(log_limit - 2 * log_amplitudes + np.log(2))
    # Half of the drop remains when p/limit = 1 − 1/√2.
    return np.maximum(log_odds + np.log(np.sqrt(2) - 1), 0.0) / (2 * modes.values)


def _times_general(problem: _Problem, modes: _Modes, neurons: np.ndarray, log_scale: float) -> np.ndarray:
    """Times at half of each drop, from exact growth on the plateaus and logistic growth of the mode during its drop."""
    bundles, clock, times = Bundles.from_neurons(neurons, log_scale), 0.0, []
    for k, drop in enumerate(modes.drops):
        plateau = bundles.ordered(_residual(problem, modes.left[:, :k]), len(modes.drops) - k)
        rate = plateau.rates[0]
        own_drop = rate**2 / (2 * np.sum(modes.right[:, k] ** 2 * problem.power))
        log_limit = np.log(2 * own_drop / rate)
        log_odds = _log_odds(log_limit - 2 * plateau.first_log_amplitude + np.log(2))
        share = 1 - np.sqrt(1 - min(drop / 2 / own_drop, _LARGEST_SHARE))
        times.append(clock + max(log_odds + np.log(share / (1 - share)), 0.0) / (2 * rate))
        half_grown = max(log_odds, 0.0) / (2 * rate)
        clock += half_grown
        bundles = plateau.others_after(half_grown)
    return np.array(times)


def _log_odds(log_ratio):
    """Compute log(e^x − 1) for x = log(limit/initial value) of a logistic mode; zero if the mode starts above half."""
    require(
        bool(np.all(np.isfinite(log_ratio))),
        "the initial weights have no component along one of the modes, which is never learned",
        argument="first",
        value=0.0,
        remedy="give random initial weights",
    )
    log_ratio = np.maximum(log_ratio, np.log(2))
    return log_ratio + np.log1p(-np.exp(-log_ratio))


def _warnings(modes: _Modes, times: np.ndarray, neurons: np.ndarray | None, scale: float) -> Iterator[str]:
    equal_growth = np.diff(modes.accelerated_times) <= 1e-6 * modes.accelerated_times[1:]
    equal_strength = -np.diff(modes.values) <= 1e-6 * modes.values[1:]
    for k in np.flatnonzero(equal_growth | equal_strength):
        yield (
            f"Jumps {k + 1} and {k + 2} coincide: their modes are equally strong, and the initial weights determine"
            " their order."
        )
    for k in np.flatnonzero((np.diff(times) <= 0) & ~(equal_growth | equal_strength)):
        yield (
            f"Jumps {k + 1} and {k + 2} merge at this scale: from these initial weights, the stronger mode is not"
            " learned first."
        )
    if _ROUND_OFF < modes.coupling < _NEARLY_INDEPENDENT:
        yield (
            f"The modes are nearly independent (coupling {modes.coupling:.1g}): the network may first learn them in the"
            " order of the singular values of Σyx, and leave the plateaus of this order only after a further time of"
            " order log(1/coupling)."
        )
    largest = 0.0 if neurons is None else scale * np.linalg.norm(neurons, axis=0).max()
    if largest > _SMALL_START:
        yield (
            f"The initial weights are not small (the largest neuron has norm {largest:.2g}), so the times are"
            " approximate."
        )
