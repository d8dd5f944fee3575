"""The theories that give the loss over time from the start that a network has, small or not."""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import jax
import numpy as np
import xarray as xr
from jaxtyping import Float

from dynascope.errors import DivergenceError, InputError
from dynascope.networks.diagonal_linear import DiagonalLinear
from dynascope.prediction.case import Case
from dynascope.prediction.measures import violation
from dynascope.prediction.theories.theory import Theory
from dynascope.record import make_record
from dynascope.theory import balanced, deep_modes, line, neuron, wide
from dynascope.theory.assumptions import BALANCED_LAYERS
from dynascope.theory.features import eigenspectrum, training_flow
from dynascope.theory.modes import emergence_time, mode_strength, saturation_time

__all__ = ["CURVES"]

_SETTLED = 1e-3  # of the fall of the loss, that may be left at the end
_LONGER, _EXTENSIONS = 4.0, 24
_SEEN = 10  # times before the loss has come to rest, that are enough to say when
_EVEN, _BY_FACTORS, _EARLIEST = 200, 200, 1e-5
_BALANCED = 1e-10  # of the size of the layers, below which an imbalance is rounding
_TOLERANCE = 1e-3  # of a loss curve that is exact, against a flow that is integrated


class _Curve(NamedTuple):
    """A loss over time, and what else is known there: variables of a record by name."""

    loss: Float[np.ndarray, " time"]
    variables: Mapping[str, tuple[tuple[str, ...], Any]]


def _followed(name: str, at: Callable[[Case, np.ndarray], _Curve]) -> Callable[[Case], xr.Dataset]:
    """The record of a curve, to the time at which the loss has come to rest."""

    def solve(case: Case) -> xr.Dataset:
        with jax.enable_x64(True):
            times = _until_settled(case, lambda times: np.asarray(at(case, times).loss))
            found = at(case, times)
        task = case.task
        coordinates: dict[str, Any] = {"time": times}
        names = {"feature": task.feature_names, "target": task.target_names}
        for dimensions, values in found.variables.values():
            for dimension, length in zip(dimensions, np.shape(values), strict=True):
                labels = names.get(dimension, ())
                own = np.array(labels) if len(labels) == length else np.arange(length)
                coordinates.setdefault(dimension, own)
        loss = np.asarray(found.loss)
        floor = case.floor
        told = []
        if loss[-1] - floor > 10 * _SETTLED * max(loss[0] - floor, 0):
            told.append(
                f"The loss ends at {loss[-1]:.4g}; the best map that such a network can have would give {floor:.4g}."
            )
        return make_record(
            {"loss": (("time",), loss), **{key: (d, np.asarray(v)) for key, (d, v) in found.variables.items()}},
            coordinates,
            attributes={
                "theory_name": name,
                "network": case.kind,
                "scale": case.scale,
                "initial_loss": float(loss[0]),
                "warnings": told,
                "loss_tolerance": _TOLERANCE,
                "loss_tolerance_reason": "the solution is exact, and the flow is integrated closely",
                "loss_maximum_tolerance": 10 * _TOLERANCE,
                "loss_maximum_tolerance_reason": "the same, where a steep fall lies between two recorded times",
                **task.attributes(),
            },
        )

    return solve


def _until_settled(case: Case, loss_at: Callable[[np.ndarray], np.ndarray]) -> Float[np.ndarray, " time"]:
    """0 and times to that at which a thousandth of the fall of the loss is left, evenly and by factors.

    Where the best map is never reached that is the fall which was seen until the equation could not be followed.
    """
    end, times, loss = 1 / max(case.input_power[0], 1e-300), None, None
    for _ in range(_EXTENSIONS):
        try:
            loss, times = loss_at(_times(end)), _times(end)
        except (DivergenceError, InputError):
            if loss is None:
                raise
            break
        if loss[-1] - case.floor <= _SETTLED * (loss[0] - case.floor):
            break
        end *= _LONGER
    assert times is not None
    assert loss is not None
    final = loss[-1]
    while True:
        place = int(np.argmax(loss - final <= _SETTLED * (loss[0] - final)))
        settled = float(times[place])
        if place > _SEEN or settled == 0:
            return _times(settled) if settled > 0 else times
        # It was over before the first times that so long a run is looked at.
        loss, times = loss_at(_times(settled)), _times(settled)


def _times(end: float) -> Float[np.ndarray, " time"]:
    even, factors = np.linspace(0, end, _EVEN), np.geomspace(_EARLIEST * end, end, _BY_FACTORS)
    return np.union1d(even, factors[:-1])


def _unexplained(case: Case) -> float:
    """The loss of the best linear map."""
    return max(case.task.target_power - float(np.sum(case.task.cross_moment.T * case.best_map)), 0.0) / 2


def _balanced(case: Case, times: np.ndarray) -> _Curve:
    """On inputs with E[x xᵀ] = s I, which is the flow of whitened ones in the time s t, with the target Σ/s."""
    first, second = _two(case)
    power, task = case.white_power, case.task
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # how far the layers are from balance is told with the other assumptions
        found = balanced.gram(first, second, task.cross_moment.T / power, power * times, approximate=True)
    excess = np.sum((np.asarray(found.product) - task.cross_moment.T / power) ** 2, axis=(1, 2)) / 2
    rest = max(task.target_power - float(np.sum(task.cross_moment**2)) / power, 0.0) / 2
    return _Curve(power * excess + rest, {"coefficient": (("time", "feature", "target"), found.product)})


def _isotropic(case: Case, times: np.ndarray) -> _Curve:
    first, second = _two(case)
    task = case.task
    path = wide.isotropic_flow(times, task.inputs, task.targets, first @ second, _imbalance(case), first.shape[1])
    return _Curve(np.asarray(path.loss), {"coefficient": (("time", "feature", "target"), path.coefficients)})


def _deep_isotropic(case: Case, times: np.ndarray) -> _Curve:
    layers, task = case.layers, case.task
    assert layers is not None
    gaps = [np.trace(after @ after.T - before.T @ before) / len(after) for before, after in itertools.pairwise(layers)]
    start = np.linalg.multi_dot(layers)
    path = wide.deep_isotropic_flow(times, task.inputs, task.targets, start, gaps)
    return _Curve(np.asarray(path.loss), {"coefficient": (("time", "feature", "target"), path.coefficients)})


def _deep_modes(case: Case, times: np.ndarray) -> _Curve:
    layers, task, power = case.layers, case.task, case.white_power
    assert layers is not None
    left, sizes, right = np.linalg.svd(task.cross_moment.T / power, full_matrices=False)
    start = np.linalg.multi_dot(layers)
    strengths = np.einsum("dm,dc,mc->m", left, start, right)
    found = deep_modes.strength_at(power * times, sizes[:, None], strengths[:, None], depth=len(layers))
    strength = np.asarray(found.strength).T
    excess = np.sum((strength - sizes) ** 2, axis=1) / 2
    rest = max(task.target_power - float(np.sum(task.cross_moment**2)) / power, 0.0) / 2
    return _Curve(power * excess + rest, {"mode_strength": (("time", "mode"), strength)})


def _neuron(case: Case, times: np.ndarray) -> _Curve:
    first, second = _two(case)
    power = case.white_power
    target = case.task.cross_moment[0] / power
    found = neuron.trajectory(float(second[0, 0]), first[:, 0], target, power * times)
    rest = max(case.task.target_power - power * float(target @ target), 0.0) / 2
    return _Curve(
        power * np.asarray(found.excess_loss) + rest, {"coefficient": (("time", "feature"), found.coefficients)}
    )


def _function_space(case: Case, times: np.ndarray) -> _Curve:
    first, second = _two(case)
    imbalance = float(second[0, 0] ** 2 - np.sum(first**2))
    beta = first[:, 0] * second[0, 0]
    path = neuron.function_space_flow(times, case.task.inputs, case.task.targets[:, 0], beta, imbalance)
    return _Curve(np.asarray(path.loss), {"coefficient": (("time", "feature"), path.coefficients)})


def _line(case: Case, times: np.ndarray) -> _Curve:
    first, second = _two(case)
    direction = np.linalg.eigh(case.task.input_moment)[1][:, -1]
    along = case.task.inputs @ direction  # all of them, where they are on a line
    data = line.line_data(np.outer(along, direction), case.task.targets)
    path = line.trajectory(first, second[:, 0], data, times)
    return _Curve(np.asarray(path.loss), {"slope_of_network": (("time",), path.strength)})


def _independent_modes(case: Case, times: np.ndarray) -> _Curve:
    network, task = case.network, case.task
    power = np.diag(task.input_moment)
    u, v = (case.scale * np.asarray(each, np.float64) for each in (network.u, network.v))
    some = power > 0
    target = np.where(some, task.cross_moment[0] / np.where(some, power, 1), 0)
    found = mode_strength(times[:, None], target[some], power[some], v[some], u[some])
    coefficients = np.tile(u * v, (len(times), 1))
    coefficients[:, some] = np.asarray(found.strength)
    excess = np.sum(power * (coefficients - target) ** 2, axis=1) / 2
    return _Curve(excess + _unexplained(case), {"coefficient": (("time", "feature"), coefficients)})


def _linear_model(case: Case, times: np.ndarray) -> _Curve:
    assert case.layers is not None
    (start,), task = case.layers, case.task
    runs = [
        training_flow(times, task.inputs, targets, initial_weights=weights)
        for targets, weights in zip(task.targets.T, start.T, strict=True)
    ]
    coefficients = np.stack([run.weights for run in runs], axis=-1)
    return _Curve(
        np.sum([run.loss for run in runs], axis=0), {"coefficient": (("time", "feature", "target"), coefficients)}
    )


def _two(case: Case) -> tuple[np.ndarray, np.ndarray]:
    layers = case.two_layers
    assert layers is not None
    case.require_dimensions(layers[0].shape[0], layers[1].shape[1])
    return layers


def _imbalance(case: Case) -> float:
    """δ of the start, zero where it is rounding or within what the layers are off balance."""
    first, second = _two(case)
    size, width = float(np.sum(first**2) + np.sum(second**2)), first.shape[1]
    delta = float(np.sum(second**2) - np.sum(first**2)) / width
    off = violation(BALANCED_LAYERS, case)
    assert off is not None
    return delta if abs(delta) * width**0.5 > max(_BALANCED, off) * size else 0.0


def _closes(case: Case) -> bool:
    """Whether the function of a balanced network tells its own motion."""
    if case.samples is None or case.two_layers is None:
        return False
    delta, width = _imbalance(case), case.two_layers[0].shape[1]
    wanted = case.task.output_dimension if delta > 0 else case.task.input_dimension
    return width == wanted if delta else True


def _is_two_layer(case: Case) -> bool:
    return case.samples is not None and case.two_layers is not None and not case.normalised


def _is_neuron(case: Case) -> bool:
    return _is_two_layer(case) and case.two_layers is not None and case.two_layers[0].shape[1] == 1


def _is_deep(case: Case) -> bool:
    return case.samples is not None and case.layers is not None and len(case.layers) > 2 and not case.normalised


def _products(case: Case) -> float:
    """Products of matrices as large as the network, at every time."""
    layers = case.layers or ()
    return 100.0 * (_EVEN + _BY_FACTORS) * max((max(layer.shape) for layer in layers), default=1) ** 3


def _curve(name: str, function: Any, at: Callable[[Case, np.ndarray], _Curve], **given: Any) -> Theory:
    usual = {"staircase": False, "operations": _products, "gives": f"the loss and {function.domain.gives}"}
    return Theory.of(name, function, solve=_followed(name, at), **{**usual, **given})


CURVES = (
    _curve(
        "balanced",
        balanced.gram,
        _balanced,
        gives="function, representations, kernel and loss at any time",
        fits=_is_two_layer,
        call="theory.balanced.gram(SCALE * network.first, SCALE * network.second, task.cross_moment.T, TIMES)",
        beside=(balanced.loss, balanced.ntk, balanced.balanced_limit),
    ),
    _curve(
        "isotropic",
        wide.isotropic_flow,
        _isotropic,
        fits=lambda case: _is_two_layer(case) and _closes(case),
        call="theory.wide.isotropic_flow(TIMES, task.inputs, task.targets, SCALE**2 * network.first @ network.second, "
        "IMBALANCE, width=network.first.shape[1])",
        beside=(wide.isotropic_preconditioner, wide.conserved_matrix),
    ),
    _curve(
        "deep-isotropic",
        wide.deep_isotropic_flow,
        _deep_isotropic,
        fits=_is_deep,
        call="theory.wide.deep_isotropic_flow(TIMES, task.inputs, task.targets, MAP, GAPS)",
        beside=(wide.layer_spectra, wide.conserved_matrices),
    ),
    _curve(
        "deep-modes",
        deep_modes.strength_at,
        _deep_modes,
        fits=_is_deep,
        call="theory.deep_modes.strength_at(TIMES, STRENGTHS_OF_TARGET, STRENGTHS_AT_START, depth=DEPTH)",
        beside=(deep_modes.time_to_strength, deep_modes.escape_time),
    ),
    _curve(
        "single-neuron",
        neuron.trajectory,
        _neuron,
        fits=_is_neuron,
        call="theory.neuron.trajectory(SCALE * network.second[0, 0], SCALE * network.first[:, 0], "
        "task.cross_moment[0], TIMES)",
        beside=(neuron.trajectory_limit, neuron.regime, neuron.escape_time, neuron.kernel_change),
    ),
    _curve(
        "neuron-function-space",
        neuron.function_space_flow,
        _function_space,
        fits=_is_neuron,
        call="theory.neuron.function_space_flow(TIMES, task.inputs, task.targets[:, 0], MAP, IMBALANCE)",
        beside=(neuron.interpolator, neuron.implicit_bias_objective),
    ),
    _curve(
        "line",
        line.trajectory,
        _line,
        fits=_is_two_layer,
        call="theory.line.trajectory(SCALE * network.first, SCALE * network.second[:, 0], "
        "theory.line.line_data(task.inputs, task.targets), TIMES)",
        beside=(line.limit, line.time_scale, line.alignment_change, line.rescaling),
    ),
    _curve(
        "independent-modes",
        mode_strength,
        _independent_modes,
        fits=lambda case: case.samples is not None and isinstance(case.network, DiagonalLinear) and not case.normalised,
        call="theory.modes.mode_strength(TIMES[:, None], BEST_MAP, numpy.diag(task.input_moment), SCALE * network.v, "
        "SCALE * network.u)",
        beside=(emergence_time, saturation_time),
    ),
    _curve(
        "linear-model",
        training_flow,
        _linear_model,
        fits=lambda case: case.samples is not None and case.layers is not None and len(case.layers) == 1,
        call="theory.features.training_flow(TIMES, task.inputs, task.targets[:, 0])",
        beside=(eigenspectrum,),
    ),
)
