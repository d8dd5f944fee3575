"""Theories that predict the loss over time, from initial weights of any scale."""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from dynascope.networks.diagonal_linear import DiagonalLinear
from dynascope.prediction.case import Case
from dynascope.prediction.measures import violation
from dynascope.prediction.theories.loss_record import POINTS, Curve, solve_until_settled
from dynascope.prediction.theories.theory import Theory
from dynascope.symmetry.layer_charges import layer_charges
from dynascope.theory import balanced, deep_modes, function_space, line_inputs, neuron
from dynascope.theory.assumptions import BALANCED_LAYERS, ONE_OUTPUT, WHITE_INPUTS
from dynascope.theory.balanced.determinants import distance_kept
from dynascope.theory.features import eigenspectrum, training_flow
from dynascope.theory.scalar_networks import emergence_time, mode_strength, saturation_time

__all__ = ["CURVES"]

_BALANCED = 1e-10  # fraction of the size of the layers below which an imbalance counts as rounding


def _unexplained(case: Case) -> float:
    """Return the loss of the best linear map."""
    return max(case.task.target_power - float(np.sum(case.task.cross_moment.T * case.best_map)), 0.0) / 2


def _white_rest(case: Case) -> float:
    """Return the loss of the best linear map on white inputs."""
    return max(case.task.target_power - float(np.sum(case.task.cross_moment**2)) / case.white_power, 0.0) / 2


def _white_least(case: Case) -> float:
    """Return the loss on white inputs of the best linear map with a rank that the hidden layers allow."""
    assert case.layers is not None
    rank = min(layer.shape[1] for layer in case.layers[:-1])
    missed = np.linalg.svd(case.task.cross_moment, compute_uv=False)[rank:]
    return _white_rest(case) + float(missed @ missed) / case.white_power / 2


def _balanced(case: Case, times: np.ndarray) -> Curve:
    """Compute the flow for E[x xᵀ] = s I: the flow on whitened inputs at time s t, with target Σ/s."""
    first, second = _two(case)
    power, task = case.white_power, case.task
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the imbalance is reported with the other assumptions
        found = balanced.gram(first, second, task.cross_moment.T / power, power * times, approximate=True)
    excess = np.sum((np.asarray(found.product) - task.cross_moment.T / power) ** 2, axis=(1, 2)) / 2
    return Curve(power * excess + _white_rest(case), {"coefficient": (("time", "feature", "target"), found.product)})


def _isotropic(case: Case, times: np.ndarray) -> Curve:
    first, second = _two(case)
    data = case.task.inputs, case.task.targets
    path = function_space.isotropic_flow(times, *data, first @ second, _imbalance(case), first.shape[1])
    return Curve(np.asarray(path.loss), {"coefficient": (("time", "feature", "target"), path.coefficients)})


def _deep_isotropic(case: Case, times: np.ndarray) -> Curve:
    layers, task = case.layers, case.task
    assert layers is not None
    start = np.linalg.multi_dot(layers)
    path = function_space.deep_isotropic_flow(times, task.inputs, task.targets, start, _gaps(case))
    return Curve(np.asarray(path.loss), {"coefficient": (("time", "feature", "target"), path.coefficients)})


def _deep_modes(case: Case, times: np.ndarray) -> Curve:
    layers, power = case.layers, case.white_power
    assert layers is not None
    sizes, strengths = _modes(case)
    found = deep_modes.strength_at(power * times, sizes[:, None], strengths[:, None], depth=len(layers))
    strength = np.asarray(found.strength).T
    excess = np.sum((strength - sizes) ** 2, axis=1) / 2
    return Curve(power * excess + _white_rest(case), {"mode_strength": (("time", "mode"), strength)})


def _gaps(case: Case) -> list[float]:
    """Return the imbalance of each pair of consecutive layers, tr(W₂W₂ᵀ − W₁ᵀW₁), per neuron between them."""
    pairs = itertools.pairwise(case.layers or ())
    return [float(np.trace(after @ after.T - before.T @ before)) / len(after) for before, after in pairs]


def _modes(case: Case) -> tuple[np.ndarray, np.ndarray]:
    """Return the singular values of the best map on white inputs, and the initial map in the same modes."""
    left, sizes, right = np.linalg.svd(case.task.cross_moment.T / case.white_power, full_matrices=False)
    return sizes, np.einsum("dm,dc,mc->m", left, np.linalg.multi_dot(case.layers or ()), right)


def _neuron(case: Case, times: np.ndarray) -> Curve:
    first, second = _two(case)
    power = case.white_power
    target = case.task.cross_moment[0] / power
    found = neuron.neuron_trajectory(float(second[0, 0]), first[:, 0], target, power * times)
    loss = power * np.asarray(found.excess_loss) + _white_rest(case)
    return Curve(loss, {"coefficient": (("time", "feature"), found.coefficients)})


def _function_space(case: Case, times: np.ndarray) -> Curve:
    first, second = _two(case)
    beta = first[:, 0] * second[0, 0]
    path = neuron.function_space_flow(times, case.task.inputs, case.task.targets[:, 0], beta, _neuron_imbalance(case))
    return Curve(np.asarray(path.loss), {"coefficient": (("time", "feature"), path.coefficients)})


def _neuron_imbalance(case: Case) -> float:
    first, second = _two(case)
    return float(layer_charges(first[:, :1], second[:1, :1]).total)


def _line(case: Case, times: np.ndarray) -> Curve:
    first, second = _two(case)
    direction = np.linalg.eigh(case.task.input_moment)[1][:, -1]
    along = case.task.inputs @ direction  # the inputs, if they are on a line
    data = line_inputs.line_data(np.outer(along, direction), case.task.targets)
    path = line_inputs.line_trajectory(line_inputs.LineNetwork(first, second[:, 0]), data, times)
    return Curve(np.asarray(path.loss), {"slope_of_network": (("time",), path.strength)})


def _independent_modes(case: Case, times: np.ndarray) -> Curve:
    network, task = case.network, case.task
    power = np.diag(task.input_moment)
    u, v = (case.scale * np.asarray(each, np.float64) for each in (network.u, network.v))
    some = power > 0
    target = np.where(some, task.cross_moment[0] / np.where(some, power, 1), 0)
    found = mode_strength(times[:, None], target[some], power[some], v[some], u[some])
    coefficients = np.tile(u * v, (len(times), 1))
    coefficients[:, some] = np.asarray(found.strength)
    excess = np.sum(power * (coefficients - target) ** 2, axis=1) / 2
    return Curve(excess + _unexplained(case), {"coefficient": (("time", "feature"), coefficients)})


def _linear_model(case: Case, times: np.ndarray) -> Curve:
    assert case.layers is not None
    (start,), task = case.layers, case.task
    runs = [
        training_flow(times, task.inputs, targets, initial_weights=weights)
        for targets, weights in zip(task.targets.T, start.T, strict=True)
    ]
    coefficients = np.stack([run.weights for run in runs], axis=-1)
    return Curve(
        np.sum([run.loss for run in runs], axis=0), {"coefficient": (("time", "feature", "target"), coefficients)}
    )


def _two(case: Case) -> tuple[np.ndarray, np.ndarray]:
    layers = case.two_layers
    assert layers is not None
    case.require_dimensions(layers[0].shape[0], layers[1].shape[1])
    return layers


def _imbalance(case: Case) -> float:
    """Return the initial imbalance δ; zero if it is within rounding errors or the measured imbalance."""
    first, second = _two(case)
    charges, width = layer_charges(first, second), first.shape[1]
    size, delta = float(charges.size), float(charges.total) / width
    off = violation(BALANCED_LAYERS, case)
    assert off is not None
    return delta if abs(delta) * width**0.5 > max(_BALANCED, off) * size else 0.0


def _kept_away(case: Case) -> str:
    """Explain why training ends above the minimum, if the conserved sign of the determinant is the reason."""
    if case.two_layers is None or _imbalance(case) or not distance_kept(*case.two_layers, case.best_map):
        return ""
    return (
        " The determinants of the initial map and the best map differ in sign, and balanced layers conserve the sign, "
        "so training ends at a saddle. Negate one column of the second layer to avoid it."
    )


def _closes(case: Case) -> bool:
    """Whether the function of this network obeys a closed differential equation."""
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
    """Estimate the operations for matrix products at every time; for small matrices, memory access dominates."""
    width = _largest(case)
    return POINTS * (8e4 + max(200 * width**2, 0.2 * width**3))


def _deep_products(case: Case) -> float:
    """Estimate the operations for the matrix roots of all layers at many small integration steps."""
    width = _largest(case)
    return POINTS * (2e6 + max(1.3e4 * width**2, 100 * width**3))


def _residuals(case: Case) -> float:
    """Estimate the operations for matrix products, and for the residuals of all samples, at every time."""
    return _products(case) + 10.0 * POINTS * case.task.samples * case.task.input_dimension


def _roots(case: Case) -> float:
    """Estimate the operations for finding the strength of each mode at given times."""
    return 1.8e8 * min(case.task.input_dimension, case.task.output_dimension)


def _eigenvectors(case: Case) -> float:
    """Estimate the operations for an eigendecomposition of the inputs per output, and for sums over its modes."""
    sizes = sorted((case.task.samples, case.task.input_dimension))
    return POINTS * 1.6e5 + 3.0 * case.task.output_dimension * sizes[1] * sizes[0] ** 2


def _maps(case: Case) -> float:
    """Return the bytes of the linear map at every time, and of the eigenvectors of the inputs."""
    inputs, outputs = case.task.input_dimension, case.task.output_dimension
    return 8.0 * (16 * inputs**2 + 6 * POINTS * inputs * outputs)


def _grams(case: Case) -> float:
    """Return the bytes of the Gram matrices of all input and output weights at every time."""
    return 8.0 * 1.25 * POINTS * (case.task.input_dimension + case.task.output_dimension) ** 2


def _largest(case: Case) -> float:
    sides = (max(layer.shape) for layer in case.layers or ())
    return float(max(sides, default=case.task.input_dimension))


def _curve(name: str, function: Any, at: Callable[[Case, np.ndarray], Curve], **given: Any) -> Theory:
    least = _white_least if WHITE_INPUTS in function.domain.assumes else None
    gives = function.domain.gives
    usual = {
        "staircase": False,
        "operations": _products,
        "memory": _maps,
        "gives": gives if "loss" in gives else f"the loss and {gives}",
    }
    return Theory.of(name, function, solve=solve_until_settled(name, at, _kept_away, least=least), **{**usual, **given})


CURVES = (
    _curve(
        "balanced",
        balanced.gram,
        _balanced,
        gives="function, representations, kernel and loss at any time",
        memory=_grams,
        equation=r"\dot P = F P + P F - P^2, \quad F = \begin{pmatrix} -\frac{\lambda}{2} I & \Sigma \\ \Sigma^\top & "
        r"\frac{\lambda}{2} I \end{pmatrix}, \quad P = Q Q^\top, \quad Q = \begin{pmatrix} W_1 \\ W_2^\top "
        r"\end{pmatrix}",
        fits=_is_two_layer,
        beside=(balanced.loss, balanced.ntk, balanced.balanced_limit),
    ),
    _curve(
        "isotropic",
        function_space.isotropic_flow,
        _isotropic,
        equation=r"\dot\beta = -\left( G \sqrt{\kappa^2 \beta^\top \beta + \frac{\delta^2}{4}} + \sqrt{\kappa^2 \beta "
        r"\beta^\top + \frac{\delta^2}{4}} \; G \right), \quad G = E[x x^\top] \beta - E[x y^\top]",
        fits=lambda case: _is_two_layer(case) and _closes(case),
        beside=(function_space.isotropic_preconditioner, function_space.conserved_matrix),
    ),
    _curve(
        "deep-isotropic",
        function_space.deep_isotropic_flow,
        _deep_isotropic,
        equation=r"\dot W = -P \left[ K \circ (P^\top G Q) \right] Q^\top, \quad W = P \, \mathrm{diag}(s) \, Q^\top, "
        r"\quad G = E[x x^\top] W - E[x y^\top]",
        fits=_is_deep,
        operations=_deep_products,
        cost_factor=8.0,  # one of five random maps took sixty times as long as the others
        beside=(function_space.layer_spectra, function_space.conserved_matrices),
    ),
    _curve(
        "deep-modes",
        deep_modes.strength_at,
        _deep_modes,
        equation=r"\frac{ds}{dt} = L \, s^{2 - 2/L} (\sigma - s)",
        fits=_is_deep,
        operations=_roots,
        beside=(deep_modes.time_to_strength, deep_modes.saddle_escape_time),
    ),
    _curve(
        "single-neuron",
        neuron.neuron_trajectory,
        _neuron,
        equation=r"\dot a = -\eta_a \, w \cdot (\beta - \beta^*), \quad \dot w = -\eta_w \, a \, (\beta - \beta^*), "
        r"\quad \beta = a w",
        fits=_is_neuron,
        beside=(neuron.neuron_limit, neuron.regime, neuron.rich_delay, neuron.kernel_change),
    ),
    _curve(
        "neuron-function-space",
        neuron.function_space_flow,
        _function_space,
        equation=r"\dot\beta = -\frac{1}{n} M(\beta) \, X^\top (X \beta - y)",
        fits=_is_neuron,
        operations=_residuals,
        beside=(neuron.interpolator, neuron.implicit_bias_objective),
    ),
    _curve(
        "line",
        line_inputs.line_trajectory,
        _line,
        equation=r"\frac{dg}{dt} = k \left( S g - \gamma P g^2 + \gamma Q \right), \quad \theta = \gamma \left( P g - "
        r"\frac{Q}{g} \right)",
        fits=_is_two_layer,
        beside=(line_inputs.line_limit, line_inputs.time_scale, line_inputs.alignment_change, line_inputs.rescaling),
    ),
    _curve(
        "independent-modes",
        mode_strength,
        _independent_modes,
        further=(ONE_OUTPUT,),
        equation=r"\dot a = \eta \lambda \, b \, (S - a b), \quad \dot b = \eta \lambda \, a \, (S - a b)",
        fits=lambda case: case.samples is not None and isinstance(case.network, DiagonalLinear) and not case.normalised,
        beside=(emergence_time, saturation_time),
    ),
    _curve(
        "linear-model",
        training_flow,
        _linear_model,
        equation=r"\dot r = -\frac{\eta}{n} K r, \quad K = H H^\top",
        fits=lambda case: case.samples is not None and case.layers is not None and len(case.layers) == 1,
        operations=_eigenvectors,
        beside=(eigenspectrum,),
    ),
)
