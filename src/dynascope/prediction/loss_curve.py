"""The loss curve at a finite scale, integrated without assuming separated time scales."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import xarray as xr
from jaxtyping import Float

from dynascope import flows
from dynascope.errors import DivergenceError
from dynascope.flows.exact.few_prompts import few_prompts
from dynascope.flows.exact.neuron_bundles import prepare_bundles
from dynascope.flows.exact.signed_phases import prepare_phases
from dynascope.flows.exact.stiff_neurons import work_of_a_step
from dynascope.flows.progress import track
from dynascope.flows.solvers.solver_choice import PreparedFlow, few_equations
from dynascope.flows.solvers.stepping import resolved_loss
from dynascope.networks.biased_two_layer import BiasedTwoLayer
from dynascope.networks.deep_linear import linear_layers
from dynascope.networks.diagonal_linear import DiagonalLinear
from dynascope.networks.linear_attention import LinearAttention, MergedAttention
from dynascope.protocols import Learnable, Network, SumOfNeurons
from dynascope.tasks.in_context import InContextRegression
from dynascope.tasks.task import Task

__all__ = ["distance_between", "loss_curve"]


class _Curve(NamedTuple):
    """A loss over time, dense enough for linear interpolation.

    Attributes:
        time: Increasing times.
        loss: The loss at these times.
        operations: Number of floating-point operations.
        variables: The integrated variables.
    """

    time: Float[np.ndarray, " point"]
    loss: Float[np.ndarray, " point"]
    operations: float = 0.0
    variables: str = ""


_Integrator = Callable[[float, float], _Curve]  # (duration, tolerance) → curve


class _Closeness(NamedTuple):
    """The tolerance of a curve and its error estimate, calibrated on random tasks.

    Attributes:
        tolerance: Step tolerance of the coarser curve.
        margin: Error of the finer curve (90 % quantile) divided by the distance between the two curves.
        floor: Error that both curves have in common, relative to the initial loss.
        finer: Ratio of the tolerances of the coarser and the finer curve.
        refinements: Maximum number of further refinements if the two curves differ too much.
    """

    tolerance: float
    margin: float
    floor: float
    finer: float = 2.0
    refinements: int = 0


# Neurons with kinks: curves of similar tolerance may miss the same kinks.
_KINKED = _Closeness(1.5e-3, 2.0, 2e-5, 4.0, 1)
_SMOOTH = _Closeness(2e-3, 1.5, 1e-6)  # other neurons
_ATTENTION = _Closeness(2e-3, 1.5, 4e-5)  # all drops are sharp
_LINEAR = _Closeness(2e-4, 1.0, 2e-7)
_DIAGONAL = _Closeness(3e-4, 1.3, 2e-7)
_LARGE = _Closeness(1e-6, 1.5, 1.5e-6)  # diagonal networks with explicit integration
_FAR = 3e-3  # error of a curve, relative to the initial loss, above which it is refined
_STEPS, _IMPLICIT_STEPS = 30_000, 3_000  # maximum number of explicit and of implicit steps
_OPERATIONS = 1e11  # maximum operations with explicit steps, at most half a minute
_IMPLICIT_OPERATIONS = 2e11  # with implicit steps, which are faster because they multiply matrices
_FEWEST = 100  # minimum number of implicit steps within this limit
_POINTS = 2000  # points of a curve; linear interpolation is then accurate to a millionth of the initial loss


def loss_curve(
    task: Learnable, network: Network, *, scale: float, duration: float, normalised: bool = False
) -> xr.Dataset | None:
    """Integrate gradient flow from a given scale as accurately as predictions require, and estimate the error.

    The integrated variables depend on the network. Two-layer linear networks are integrated as bundles of neurons
    (`flows.linear_flow`), and diagonal networks through the time integral of the gradient (`flows.diagonal_flow`). Any
    other sum of neurons of degree two or more, including attention, is integrated in directions and log-norms
    (`flows.polar_flow`). The flow is integrated twice, with different tolerances. For neurons with kinks, a third,
    finer integration follows if the two curves differ too much.

    Args:
        task: The data.
        network: A module with its weights at unit scale.
        scale: Factor on the initial weights.
        duration: Gradient-flow time at which to stop.
        normalised: Whether to integrate the homogeneity-normalised flow.

    Returns:
        A record with `loss` over `time`, and `rougher_loss`, the loss from the coarser integration. Its attribute
        `error` estimates the mean error of `loss` over log time, relative to the initial loss; nine of ten curves have
        smaller errors (see `_Closeness`). The record ends before the duration if the integration takes too many steps
        or operations; the attribute `operations` contains their number. None if there is no method for the network and
        task, or if even a few steps take too long.

    Raises:
        DivergenceError: The integration failed.

    Example:
        >>> from dynascope.networks import TwoLayer
        >>> task = Task(np.diag([1.0, 1.2, 0.9, 1.1]), [[1.5], [1.0], [-0.8], [-0.9]])
        >>> curve = loss_curve(task, TwoLayer(4, 12, 1, activation="relu"), scale=1e-5, duration=100.0)
        >>> curve.attrs["error"] < 1e-3
        True
    """
    found = _flow(task, network, scale, normalised)
    if found is None:
        return None
    integrate, closeness = found
    curves: list[_Curve] = []
    for tolerance in track((closeness.tolerance, closeness.tolerance / closeness.finer), "curves"):
        curves.append(integrate(duration, tolerance))
        duration = min(duration, float(curves[-1].time[-1]))
        if duration == 0:
            raise DivergenceError(
                f"at scale {scale:.3g}, the flow reaches the step limit before the loss changes",
                time=0.0,
                remedy="choose a larger scale, or the homogeneity-normalised flow",
            )
    rough, better = curves
    apart = _distance(rough, better)
    for power in range(1, closeness.refinements + 1):
        if closeness.margin * apart <= _FAR:
            break
        # At a kink a neuron may take either path, which determines the rest of the curve.
        end = float(better.time[-1])
        finer = integrate(end, closeness.tolerance / closeness.finer ** (power + 1))
        curves.append(finer)
        if float(finer.time[-1]) < end:
            break
        rough, better = better, finer
        # Two curves on the same path may both be wrong.
        apart = max(_distance(rough, better), apart / closeness.finer)
    error = closeness.margin * apart + closeness.floor
    # Not validated by `make_record`, which would take a tenth of the time for a small table.
    return xr.Dataset(
        {
            "loss": ("time", better.loss),
            "rougher_loss": ("time", np.interp(better.time, rough.time, rough.loss)),
        },
        {"time": better.time},
        {"error": error, "operations": sum(each.operations for each in curves), "variables": better.variables},
    )


def distance_between(one: xr.Dataset, other: xr.Dataset) -> float:
    """Return the mean distance of two losses over log time, relative to the initial loss.

    Args:
        one: Record with `loss` over `time`.
        other: Another record, up to the same time.

    Example:
        >>> falling = [xr.Dataset({"loss": ("time", [1.0, rest])}, {"time": [0.0, 1.0]}) for rest in (0.5, 0.5)]
        >>> distance_between(*falling)
        0.0
    """
    return _distance(*(_Curve(each["time"].to_numpy(), each["loss"].to_numpy()) for each in (one, other)))


def _distance(one: _Curve, other: _Curve) -> float:
    moving = np.flatnonzero(other.loss < 0.999 * other.loss[0])
    begin = other.time[moving[0]] if len(moving) else other.time[-1] / 10
    shared = np.geomspace(begin / 2, other.time[-1], 1000)
    here, there = (np.interp(shared, each.time, each.loss) for each in (one, other))
    # Weights that fit all samples are constant, with a loss of zero.
    return float(np.mean(np.abs(here - there)) / (other.loss[0] or 1.0))


def _flow(task: Any, network: Any, scale: float, normalised: bool) -> tuple[_Integrator, _Closeness] | None:
    """Return the integrator of a loss curve, and its tolerances."""
    if isinstance(task, InContextRegression) and isinstance(network, LinearAttention | MergedAttention):
        return _implicit(few_prompts(task), network, scale, _ATTENTION)
    if not isinstance(task, Task):
        return None
    layers = linear_layers(network)
    if layers is not None:
        return _exactly(prepare_bundles(task, *layers, scale=scale), "neuron bundles"), _LINEAR
    if isinstance(network, DiagonalLinear) and np.all(np.asarray(network.v) == 0) and np.ptp(network.u) == 0:
        prepared = prepare_phases(task, scale=scale * float(network.u[0]))
        return _exactly(prepared, "signed phases"), _DIAGONAL if few_equations(prepared.equations) else _LARGE
    if not (isinstance(network, SumOfNeurons) and network.degree >= 2):
        return None
    if network.degree > 2 and not (normalised or isinstance(network, BiasedTwoLayer)):
        return _implicit(task, network, scale, _SMOOTH)
    return _by_neurons(task, network, scale=scale, normalised=normalised), _KINKED


def _exactly(prepared: PreparedFlow, variables: str) -> _Integrator:
    def integrate(duration: float, tolerance: float) -> _Curve:
        record, took = prepared.solve(
            duration=duration, tolerance=tolerance, max_steps=_STEPS, operations=_OPERATIONS, partial=True
        )
        return _Curve(*resolved_loss(record, _POINTS), took, variables)

    return integrate


def _by_neurons(task: Task, network: Any, **options: Any) -> _Integrator:
    limits: dict[str, Any] = {"max_steps": _STEPS, "operations": _OPERATIONS, "partial": True, "points": _POINTS}

    def integrate(duration: float, tolerance: float) -> _Curve:
        record = flows.polar_flow(task, network, duration=duration, tolerance=tolerance, **limits | options)
        notes = {name: record.attrs[name] for name in ("operations", "variables") if name in record.attrs}
        return _Curve(record["time"].to_numpy(), record["loss"].to_numpy(), **notes)

    return integrate


def _implicit(task: Task, network: Any, scale: float, closeness: _Closeness) -> tuple[_Integrator, _Closeness] | None:
    if _FEWEST * work_of_a_step(task, network) > _IMPLICIT_OPERATIONS:
        return None
    limits = {"solver": "stiff", "max_steps": _IMPLICIT_STEPS, "operations": _IMPLICIT_OPERATIONS}
    return _by_neurons(task, network, scale=scale, **limits), closeness
