"""Measures of the violation of each assumption: one number, zero if the assumption holds exactly."""

from __future__ import annotations

import itertools
from collections.abc import Callable

import equinox as eqx
import jax
import numpy as np

from dynascope.networks.diagonal_linear import DiagonalLinear
from dynascope.prediction.case import Case
from dynascope.prediction.ntk_modes import tangent_modes
from dynascope.prediction.theories.loss_record import settled_times
from dynascope.symmetry.layer_charges import layer_charges
from dynascope.tasks.in_context import InContextRegression
from dynascope.theory import assumptions
from dynascope.theory.assumptions import Assumption
from dynascope.theory.second_moment import MEASURED

__all__ = ["violation"]

_PAIRS = 2000  # maximum number of samples for which all pairs are compared
_OPERATIONS = 1e9  # approximate limit for the modes of an NTK
_NEGLIGIBLE = 1e-3  # fraction of the explained variance below which a mode is ignored
_RANK = 1e-10  # fraction of the largest singular value below which others count as zero


def violation(assumption: Assumption, case: Case) -> float | None:
    """Measure the violation of an assumption; None if it cannot be measured.

    Args:
        assumption: One of `theory.assumptions`.
        case: The case.

    Example:
        >>> from dynascope.networks import DiagonalLinear
        >>> from dynascope.tasks import Task
        >>> case = Case(Task([[1.0, 0.0], [0.0, 2.0]], [1.0, 2.0]), DiagonalLinear(2), scale=1e-3)
        >>> round(violation(assumptions.WHITE_INPUTS, case), 6), violation(assumptions.SMALL_START, case)
        (0.6, 0.001)
    """
    return _MEASURES[assumption.name](case)


def _of_second_moment(measure: Callable[[np.ndarray], float]) -> Callable[[Case], float | None]:
    return lambda case: None if case.samples is None else measure(case.task.input_moment)


def _on_a_line(case: Case) -> float | None:
    return None if case.samples is None else float(case.input_power[1:].sum() / max(case.input_power.sum(), 1e-300))


def _orthogonal(case: Case) -> float | None:
    """Return the largest |cosine| between samples or, for very many samples, a lower bound on it."""
    if case.samples is None:
        return None
    x = case.task.inputs
    sizes = np.linalg.norm(x, axis=1)
    x = x[sizes > 0] / sizes[sizes > 0, None]
    n, d = x.shape
    if n > _PAIRS:
        few = np.abs(x[:_PAIRS] @ x[:_PAIRS].T) - np.eye(_PAIRS)
        return float(max(few.max(), np.sqrt(max(n / d - 1, 0) / (n - 1))))
    return float(np.max(np.abs(x @ x.T) - np.eye(n), initial=0.0))


def _off_centre(case: Case) -> float | None:
    if case.samples is None:
        return None
    # The share of a constant that a linear map of the inputs can represent bounds what the biases explain in addition.
    mean, targets = case.task.inputs.mean(axis=0), case.task.targets
    share = float(mean @ np.linalg.pinv(case.task.input_moment, rcond=1e-12, hermitian=True) @ mean)
    of_targets = float(np.linalg.norm(targets.mean(axis=0)) / np.sqrt(np.mean(np.sum(targets**2, axis=1))))
    return max(max(share, 0.0) ** 0.5, of_targets)


def _outputs(case: Case) -> float | None:
    return None if case.samples is None else float(case.task.output_dimension)


def _balance(case: Case) -> float | None:
    if case.layers is None or len(case.layers) < 2:
        return None
    worst, size = 0.0, sum(float(np.sum(layer**2)) for layer in case.layers)
    for first, second in itertools.pairwise(case.layers):
        charges = layer_charges(first, second)
        gap = charges.matrix - charges.total / first.shape[1] * np.eye(first.shape[1])
        worst = max(worst, float(np.linalg.norm(gap)))
    return worst / size if size > 0 else 0.0


def _aligned(case: Case) -> float | None:
    """Return the fraction of the initial map outside the singular vectors of the target."""
    if isinstance(case.network, DiagonalLinear):
        return 0.0  # its modes are the inputs themselves
    if case.samples is None or case.layers is None:
        return None
    left, sizes, right = np.linalg.svd(case.task.cross_moment.T)
    start = case.layers[0]
    for layer in case.layers[1:]:
        start = start @ layer
    if len({*sizes.round(12)}) < len(sizes):  # the vectors of equal singular values are not unique
        return None
    turned = left.T @ start @ right.T
    off = turned - np.eye(*turned.shape) * turned
    total = float(np.linalg.norm(turned))
    return float(np.linalg.norm(off)) / total if total > 0 else 0.0


def _equal(case: Case) -> float | None:
    parts = case.equal_parts
    return None if parts is None else float(np.ptp(parts) / max(np.max(parts), 1e-300))


def _output_weights(case: Case) -> float | None:
    if case.activation is None:
        return None
    inner, outer = (np.asarray(each, np.float64) for each in (case.network.first, case.network.second))
    sizes, weights = np.linalg.norm(inner, axis=0), np.linalg.norm(outer, axis=1)
    some = sizes > 0
    return float(np.max(1 - weights[some] / sizes[some], initial=0.0))


def _lazy(case: Case) -> float | None:
    """Return the relative movement of the weights of the linearised network until its loss has converged."""
    if case.samples is None:
        return None
    if case.linear_in_weights:
        return 0.0
    start, task = case.start, case.task
    weights = sum(np.size(leaf) for leaf in jax.tree.leaves(eqx.filter(start, eqx.is_inexact_array)))
    most = max(int(_most_rows(weights)) // task.output_dimension, 1)
    few = np.linspace(0, task.samples - 1, min(most, task.samples)).astype(int)
    modes = tangent_modes(start, task.inputs[few], task.targets[few])
    if not len(modes.rates):
        return 0.0
    return modes.movement(float(settled_times(modes.loss, floor=modes.rest / 2, first=1 / modes.rates[-1])[-1]))


def _most_rows(weights: int) -> float:
    """Return the number of output rows at which computing the NTK modes takes `_OPERATIONS` operations."""
    return max(_OPERATIONS / max(weights, 1) ** 2, min((_OPERATIONS / max(weights, 1)) ** 0.5, weights))


def _widths(case: Case) -> float | None:
    if case.layers is None:
        return None
    widths = [case.layers[0].shape[0], *(layer.shape[1] for layer in case.layers)]
    return 1 - min(widths) / max(widths)


def _neurons(case: Case) -> float | None:
    if case.samples is None or case.layers is None or len(case.layers) < 2:
        return None
    sizes = np.linalg.svd(case.best_map, compute_uv=False)
    rank = int(np.sum(sizes > _RANK * max(sizes.max(initial=0), 1e-300)))
    return float(max(rank - min(layer.shape[1] for layer in case.layers[:-1]), 0))


def _samples(case: Case) -> float | None:
    return None if case.samples is None else max(0.0, 1 - case.task.samples / case.task.input_dimension)


def _separated(case: Case) -> float | None:
    """Return the largest s^(1 − τ/τ′) of consecutive modes at scale s, with τ = 1/rate; weak modes are omitted."""
    if isinstance(case.task, InContextRegression):
        rates = np.linalg.eigvalsh(case.task.covariance) ** 2
        gains = np.sqrt(rates)
    elif case.samples is None:
        return None
    else:
        cross = case.task.cross_moment
        rates = np.abs(cross) if isinstance(case.network, DiagonalLinear) else np.linalg.svd(cross, compute_uv=False)
        gains = rates**2
    rates = np.sort(rates[gains > _NEGLIGIBLE * max(gains.sum(), 1e-300)], axis=None)
    if len(rates) < 2:
        return 0.0
    return float(np.max(min(case.scale, 1.0) ** (1 - rates[:-1] / rates[1:])))


def _rates(case: Case) -> float:
    return 1 - min(case.rates) / max(case.rates) if case.rates else 0.0


def _steps(case: Case) -> float | None:
    """Return η λ/2, with the curvature λ of f(x) = x W₁ ⋯ W_L after training from small or balanced weights."""
    if not case.rates:
        return 0.0
    if case.samples is None or case.layers is None:
        return None
    best = np.linalg.norm(case.best_map, 2)
    depth, power = len(case.layers), case.input_power[0]
    start = max(np.linalg.norm(layer, 2) for layer in case.layers)
    layer = max(best ** (1 / depth), start) if depth > 1 else 1.0
    return float(max(case.rates) * depth * layer ** (2 * depth - 2) * power / 2)


def _batches(case: Case) -> float | None:
    if case.batch_size is None:
        return 0.0
    return None if case.samples is None else max(0.0, 1 - case.batch_size / case.samples.samples)


_MEASURES: dict[str, Callable[[Case], float | None]] = {
    **{name: _of_second_moment(measure) for name, measure in MEASURED.items()},
    assumptions.ENOUGH_SAMPLES.name: _samples,
    assumptions.SEPARATED_TIMES.name: _separated,
    assumptions.EQUAL_RATES.name: _rates,
    assumptions.INPUTS_ON_A_LINE.name: _on_a_line,
    assumptions.ORTHOGONAL_SAMPLES.name: _orthogonal,
    assumptions.ONE_OUTPUT.name: _outputs,
    assumptions.SMALL_START.name: lambda case: case.scale,
    assumptions.BALANCED_LAYERS.name: _balance,
    assumptions.ALIGNED_LAYERS.name: _aligned,
    assumptions.EQUAL_WEIGHTS.name: _equal,
    assumptions.LARGE_OUTPUT_WEIGHTS.name: _output_weights,
    assumptions.EQUAL_WIDTHS.name: _widths,
    assumptions.CENTRED_DATA.name: _off_centre,
    assumptions.ENOUGH_NEURONS.name: _neurons,
    assumptions.LAZY_TRAINING.name: _lazy,
    assumptions.SMALL_STEPS.name: _steps,
    assumptions.FULL_BATCHES.name: _batches,
}
