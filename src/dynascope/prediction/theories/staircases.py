"""Theories that predict staircases."""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr

from dynascope.alternating import alternating_flow
from dynascope.networks.deep_diagonal import DeepDiagonal
from dynascope.networks.deep_linear import linear_layers
from dynascope.networks.diagonal_linear import DiagonalLinear
from dynascope.networks.linear_attention import LinearAttention, MergedAttention
from dynascope.prediction.alternating_flow import expected_time_error, predict_by_alternation
from dynascope.prediction.case import Case
from dynascope.prediction.theories.algebra import ALGEBRA
from dynascope.prediction.theories.theory import Theory
from dynascope.prediction.theories.time_tolerance import Solved, Trust, neurons_of, time_error
from dynascope.protocols import SumOfNeurons
from dynascope.results import Staircase
from dynascope.tasks.in_context import InContextRegression
from dynascope.theory.assumptions import ENOUGH_NEURONS, ONE_OUTPUT, SEPARATED_TIMES, SMALL_START
from dynascope.theory.attention import linear_attention_staircase, merged_attention_staircase
from dynascope.theory.relu_alignment import orthogonal_staircase
from dynascope.theory.staircase import deep_diagonal_staircase, diagonal_staircase, linear_staircase
from dynascope.validation import require

__all__ = ["STAIRCASES"]

_POINTS = 2000  # of a curve, in order of magnitude
_STEPS = 2e4  # of alternating gradient flow, in order of magnitude


def _linear(case: Case) -> Staircase:
    layers = linear_layers(case.network)
    assert layers is not None
    case.require_dimensions(layers[0].shape[0], layers[1].shape[1])
    task = case.task
    return linear_staircase(
        task.cross_moment, task.input_moment, task.target_power, scale=case.scale, first=layers[0], second=layers[1]
    )


def _separation_is_measurable(case: Case) -> bool:
    """Whether the separation of the jumps can be measured before they are predicted."""
    return linear_layers(case.network) is not None or isinstance(case.network, DiagonalLinear | LinearAttention)


def _require_one_target(case: Case) -> None:
    require(
        case.task.output_dimension == 1,
        f"the task has {case.task.output_dimension} targets, but a diagonal network has one output",
        argument="task",
        value=case.task.output_dimension,
        remedy="select one target with `only`",
    )


def _diagonal(case: Case) -> Staircase:
    network, task = case.network, case.task
    u, v = np.asarray(network.u, np.float64), np.asarray(network.v, np.float64)
    _require_one_target(case)
    case.require_dimensions(len(u), 1)
    require(
        bool(np.all(u == u[0]) and u[0] > 0 and np.all(v == 0)),
        "the initial weights of the diagonal network do not have the form u = constant, v = 0",
        argument="network",
        remedy="use the default weights of DiagonalLinear",
    )
    scale = case.scale * float(u[0])
    return diagonal_staircase(task.inputs, task.targets[:, 0], scale=scale, feature_names=task.feature_names)


def _deep_diagonal(case: Case) -> Staircase:
    network, task = case.network, case.task
    _require_one_target(case)
    case.require_dimensions(len(network.u), 1)
    parts = case.equal_parts
    assert parts is not None
    require(
        bool(np.all(parts == parts[0]) and parts[0] > 0),
        "the initial weights of the diagonal network are not all equal",
        argument="network",
        remedy="use the default weights of DeepDiagonal",
    )
    return deep_diagonal_staircase(
        task.inputs,
        task.targets[:, 0],
        depth=network.depth,
        scale=case.scale * float(parts[0]),
        feature_names=task.feature_names or None,
    )


def _attention(case: Case) -> Staircase:
    task = case.task
    return linear_attention_staircase(
        task.covariance, task.context_length, scale=case.scale, neurons=case.network.neurons
    )


def _merged_attention(case: Case) -> Staircase:
    task = case.task
    return merged_attention_staircase(
        task.covariance, task.context_length, scale=case.scale, neurons=case.network.neurons
    )


def _orthogonal(case: Case) -> Staircase:
    first, second = (np.asarray(each, np.float64) for each in (case.network.first, case.network.second))
    case.require_dimensions(first.shape[0], second.shape[1])
    return orthogonal_staircase(case.task.inputs, case.task.targets, scale=case.scale, first=first, second=second)


def _alternation(case: Case) -> xr.Dataset:
    options: dict[str, Any] = {"normalised": case.normalised, "jumps": case.jumps, "max_steps": case.max_steps}
    return predict_by_alternation(case.task, case.network, scale=case.scale, **options)


def _is_attention(case: Case, kind: type) -> bool:
    return isinstance(case.network, kind) and isinstance(case.task, InContextRegression)


def _eigen(case: Case) -> float:
    return 4.0 * max(case.task.input_dimension, case.task.output_dimension) ** 3


def _paths(case: Case) -> float:
    """Return the bytes of the second moment, and of all coefficients along a curve."""
    return 8.0 * case.task.input_dimension * (8 * case.task.input_dimension + 10 * _POINTS)


STAIRCASES = (
    Theory.of(
        "linear-staircase",
        linear_staircase,
        further=(ENOUGH_NEURONS,),
        equation=r"\mathcal{L}_k = \frac{1}{2} \left( \mathrm{tr}\, \Sigma_{yy} - \sum_{j \leq k} s_j^2 \right), \quad "
        r"s_j = \sigma_j\left(\Sigma_{yx} \Sigma_{xx}^{-1/2}\right)",
        fits=lambda case: case.samples is not None and linear_layers(case.network) is not None,
        solve=Solved(
            Trust(
                kind="linear",
                time_offset=2.2,
                time_floor=0.03,
                time_offset_reason="times are predicted up to a nearly constant offset: relative error "
                "2.2/log(1/scale), at least 3 %",
                slope_tolerance=0.05,
                slope_reason="neighbouring modes still overlap at finite scale, by up to 3 % on digits",
            ),
            _linear,
        ),
        staircase=True,
        operations=_eigen,
    ),
    Theory.of(
        "diagonal-staircase",
        diagonal_staircase,
        equation=r"\beta(t) = \frac{\alpha^2}{2} \sinh\left( 2 \int_0^t m \, dt' \right), \quad m = E\left[ x (y - "
        r"\beta^\top x) \right]",
        fits=lambda case: case.samples is not None and isinstance(case.network, DiagonalLinear),
        solve=Solved(
            Trust(
                kind="diagonal",
                time_offset=2.2,
                time_floor=0.0,
                time_offset_reason="times are known up to a constant offset: 2.2/log(1/scale) covers 99 % of jumps",
                slope_tolerance=0.01,
                slope_reason="corrections to the slope are exponentially small unless a plateau is slow",
            ),
            _diagonal,
        ),
        staircase=True,
        operations=lambda case: 30 * case.task.input_dimension**3.0,
        memory=_paths,
    ),
    Theory.of(
        "deep-diagonal-staircase",
        deep_diagonal_staircase,
        equation=r"u^{2-D} = \alpha^{2-D} - D(D-2) G, \quad v^{2-D} = \alpha^{2-D} + D(D-2) G, \quad G = \int_0^t "
        r"E\left[ x (y - \beta^\top x) \right] dt'",
        fits=lambda case: (
            case.samples is not None
            and isinstance(case.network, DeepDiagonal)
            and case.network.depth > 2
            and not case.normalised
        ),
        solve=Solved(
            Trust(
                kind="deep diagonal",
                time_offset=0.0,
                time_floor=0.1,
                time_offset_reason="the neglected part of the times vanishes with the scale",
                slope_tolerance=0.05,
                slope_reason="the neglected part of the times is nearly the same at both scales",
            ),
            _deep_diagonal,
        ),
        staircase=True,
        operations=lambda case: 3 * case.task.input_dimension**4.0,
    ),
    Theory.of(
        "linear-attention",
        linear_attention_staircase,
        equation=r"\dot v = k^\top M q, \quad \dot k = v M q, \quad \dot q = v M^\top k, \quad M = \Sigma^2 \text{ on "
        r"the modes not yet learned}",
        fits=lambda case: _is_attention(case, LinearAttention) and not case.normalised,
        solve=Solved(
            Trust(
                kind="attention",
                time_offset=0.0,
                time_floor=0.05,
                time_offset_reason="the neglected part of the times vanishes with the scale, more slowly for close "
                "eigenvalues",
                slope_tolerance=0.02,
                slope_reason="the neglected part of the times is nearly the same at both scales",
            ),
            _attention,
        ),
        staircase=True,
        operations=lambda case: 100.0 * neurons_of(case) * len(case.task.covariance),
    ),
    Theory.of(
        "merged-attention",
        merged_attention_staircase,
        equation=r"t = \frac{\log(1/\alpha)}{\left\| \Sigma^2 \right\|_F} + O(1)",
        fits=lambda case: _is_attention(case, MergedAttention),
        solve=Solved(
            Trust(
                kind="merged attention",
                time_offset=0.5,
                time_floor=0.0,
                time_offset_reason="the time is known up to an offset that vanishes with the scale",
                slope_tolerance=0.01,
                slope_reason="corrections to the slope vanish with the scale",
            ),
            _merged_attention,
        ),
        staircase=True,
        operations=lambda case: 100.0 * neurons_of(case) * len(case.task.covariance),
    ),
    *ALGEBRA,
    Theory.of(
        "orthogonal-relu",
        orthogonal_staircase,
        further=(ONE_OUTPUT,),
        equation=r"t_\pm = \frac{\log(1/\alpha)}{\left\| D_\pm \right\|}, \quad D_\pm = \frac{1}{n} \sum_{\pm y_j > 0} "
        r"y_j x_j",
        fits=lambda case: case.samples is not None and case.activation == "relu" and not case.normalised,
        solve=Solved(
            Trust(
                kind="relu",
                time_offset=2.2,
                time_floor=0.0,
                time_offset_reason="times are known up to an offset independent of log(1/scale)",
                slope_tolerance=0.05,
                slope_reason="the neglected part of the times is nearly the same at both scales",
            ),
            _orthogonal,
        ),
        staircase=True,
        special=True,
        operations=lambda case: 10.0 * neurons_of(case) * case.task.samples,
    ),
    Theory(
        name="alternating-flow",
        function=alternating_flow,
        network="any sum of homogeneous neurons of degree two or more",
        gives="times, levels and features of all jumps, by integrating each neuron on the data",
        equation=r"\dot\theta = \nabla_\theta \, U(\theta), \quad U(\theta) = E \left\langle f(x; \theta), \, r(x) "
        r"\right\rangle, \quad r = y - f_{\text{active}}(x)",
        fits=lambda case: (
            isinstance(case.network, SumOfNeurons)
            and case.network.degree >= 2
            and (case.samples is None or case.maps_rows)
        ),
        solve=_alternation,
        domain=None,
        assumes=(SMALL_START,),
        assumes_too=lambda case: (SEPARATED_TIMES,) if _separation_is_measurable(case) else (),
        exact=False,
        error=lambda case: (
            time_error(expected_time_error(case.network, case.scale, normalised=case.normalised))
            if case.scale < 1
            else ""
        ),
        staircase=True,
        operations=lambda case: _STEPS * neurons_of(case) * (case.task.samples if case.samples else 100),
        cost_factor=20.0,  # benchmarks/theory_costs.py; depends on the number of jumps and on how fast neurons converge
    ),
)
