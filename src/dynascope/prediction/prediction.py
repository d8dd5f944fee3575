"""Predict: the theory that fits a task and a network, as a record."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import xarray as xr

from dynascope.arguments import given, require, require_count, require_positive
from dynascope.errors import InputError
from dynascope.networks.deep_linear import linear_layers
from dynascope.networks.diagonal_linear import DiagonalLinear
from dynascope.networks.kinds import NetworkKind, network_for
from dynascope.networks.linear_attention import LinearAttention, MergedAttention
from dynascope.networks.own_module import at_unit_scale, own_network
from dynascope.networks.two_layer import TwoLayer
from dynascope.prediction.alternating_flow import predict_by_alternation
from dynascope.prediction.at_this_scale import at_this_scale
from dynascope.prediction.learned import with_words
from dynascope.prediction.units import with_units
from dynascope.protocols import Learnable, Network, SumOfNeurons
from dynascope.record import Staircase, staircase_record
from dynascope.tasks.as_task import as_task
from dynascope.tasks.in_context import InContextRegression
from dynascope.tasks.task import Task
from dynascope.theory.attention.linear_attention import linear_attention_staircase
from dynascope.theory.attention.merged_attention import merged_attention_staircase
from dynascope.theory.staircase import diagonal_staircase, linear_staircase

__all__ = ["predict"]


def predict(
    task: Learnable | Sequence[Any] | Mapping[str, Any],
    network: Network | NetworkKind,
    *,
    scale: float | None = None,
    seed: int = 0,
    normalised: bool = False,
    jumps: int | None = None,
    curve: bool = True,
) -> xr.Dataset:
    """Predict what a network trained by gradient flow from small initialisation learns, in what order and when.

    Where a closed form is known for the pair of task and network it is used; any other sum of homogeneous neurons is
    predicted by alternating gradient flow (see `alternating.alternating_flow`), which follows each small neuron on the
    data.

    Args:
        task: The data, or an expectation in closed form; a pair (inputs, targets), or a data set of
            scikit-learn, is what `Task` makes of it.
        network: A module with its weights at unit scale, or the name of a kind ("linear", "diagonal", "relu",
            "quadratic", "attention"). Or one of your own with the weights from which it will be trained: a
            `torch.nn.Sequential`, `equinox.nn.Sequential` or `equinox.nn.MLP` of two linear layers without bias and a
            homogeneous function between them.
        scale: Factor on the weights at the start, below one. If not given, the weights are those of the start, and
            their scale is measured: their norm over that of weights at unit scale.
        seed: Seed of the initial weights when the network is given by name; the record then says `weights="drawn"`.
        normalised: Whether to predict the homogeneity-normalised flow instead, in which neurons of every degree grow
            exponentially.
        jumps: Number of jumps after which to stop; None for all.
        curve: Whether to follow the loss at this scale too, which says how far each jump of the limit is off there.

    Returns:
        A staircase record (see `record.staircase_record`): over the jumps the time at this scale, the accelerated time
        (limit of the time over the unit of `record.time_unit`, log(1/scale) for degree 2, as the scale goes to zero),
        the loss before and after, what is learned in the names of inputs and outputs, which jumps are slow and why, and
        what the theory knows of the feature; `learned_direction` has the part of each input, in units of its spread,
        where a jump is of several inputs. The attribute `theory` names the theory that was used, `complete` says
        whether there are no further jumps. With the curve also `loss` over `time` (attribute `curve_error`), how far
        each time and level may be off at this scale, and the times of slow jumps as the curve has them; that is for
        samples and for two-layer, diagonal and other sums of neurons.

    Raises:
        InputError: No theory fits the pair (the message lists what does), or an argument is outside its domain.

    Example:
        >>> task = Task(np.eye(2) * 2**0.5, np.diag([4.0, 1.0]) * 2**0.5, name="two modes")
        >>> staircase = predict(task, "linear", scale=1e-8)
        >>> staircase["accelerated_time"].to_numpy(), staircase["loss_after"].to_numpy()
        (array([0.25, 1.  ]), array([0.5, 0. ]))
    """
    require_count(**given(jumps=jumps))
    task = as_task(task)
    if isinstance(network, str):
        require(scale is not None, "scale is not given", argument="scale", remedy="choose a number below one")
        start = network_for(network, task, seed=seed)
    else:
        start = network
    start, factor = _started(task, start, scale)
    staircase = _staircase(task, start, factor, normalised, jumps)
    if isinstance(network, str) and not isinstance(start, DiagonalLinear):
        staircase = staircase.assign_attrs(weights="drawn")
    staircase = with_units(staircase, task)
    return with_words(at_this_scale(staircase, task, start) if curve else staircase, task, start)


def _started(task: Any, network: Any, scale: float | None) -> tuple[Any, float]:
    """A network that theory knows, with its weights at unit scale, and the scale that it starts from."""
    own = own_network(network)
    if own is not None:
        network = own
        if isinstance(task, Task):
            _require_dimensions(task, own.first.shape[0], own.second.shape[1])
    if scale is None:
        network, scale = at_unit_scale(network)
        require(
            scale < 1,
            f"the weights are those of scale {scale:.3g}",
            argument="network",
            value=scale,
            remedy="predict before training, from small weights: multiply them all by one factor, such as 0.01",
        )
    require_positive(scale=scale)
    require(scale < 1, f"scale is {scale}", argument="scale", value=scale, remedy="choose a number below one")
    return network, scale


def _staircase(task: Any, network: Any, scale: float, normalised: bool, jumps: int | None) -> xr.Dataset:
    """That of the limit of a vanishing scale."""
    for theory in THEORIES:
        if theory.fits(task, network, normalised):
            staircase = _judged_by(theory, theory.solve(task, network, scale), task, scale)
            complete = jumps is None or staircase.sizes["jump"] <= jumps
            return staircase.isel(jump=slice(jumps and int(jumps))).assign_attrs(complete=int(complete))
    if isinstance(network, SumOfNeurons) and network.degree >= 2:
        return predict_by_alternation(task, network, scale=scale, normalised=normalised, jumps=jumps)
    domains = (*(theory.domain for theory in THEORIES), "any sum of neurons of degree two or more")
    raise InputError(
        f"no theory here predicts a {_name(network)}",
        argument="network",
        value=_name(network),
        remedy=f"choose {'; or '.join(domains)}",
    )


@dataclasses.dataclass(frozen=True)
class _Theory:
    """A staircase theory, the networks it covers, and how well its times can be expected to hold.

    The observed time of a jump differs from the predicted one by an amount that stays bounded as the scale goes to
    zero, while the time itself grows as log(1/scale). So the relative error is of order 1/log(1/scale), and the slope
    of the time against log(1/scale) is the sharper test.
    """

    kind: str
    domain: str
    fits: Callable[[Any, Any, bool], bool]
    solve: Callable[[Any, Any, float], Staircase]
    time_offset: float
    time_floor: float
    time_offset_reason: str
    slope_tolerance: float
    slope_reason: str


def _solve_linear(task: Task, network: Any, scale: float) -> Staircase:
    layers = linear_layers(network)
    assert layers is not None
    _require_dimensions(task, layers[0].shape[0], layers[1].shape[1])
    return linear_staircase(
        task.cross_moment, task.input_moment, task.target_power, scale=scale, first=layers[0], second=layers[1]
    )


def _solve_diagonal(task: Task, network: DiagonalLinear, scale: float) -> Staircase:
    u, v = np.asarray(network.u, np.float64), np.asarray(network.v, np.float64)
    require(
        task.output_dimension == 1,
        f"the task has {task.output_dimension} targets and a diagonal network has one output",
        argument="task",
        value=task.output_dimension,
        remedy="keep one target (--only NAME on the command line, task.only(name) in Python)",
    )
    _require_dimensions(task, len(u), 1)
    require(
        bool(np.all(u == u[0]) and u[0] > 0 and np.all(v == 0)),
        "the diagonal network does not start from u = constant, v = 0",
        argument="network",
        remedy="use DiagonalLinear as it is initialised",
    )
    return diagonal_staircase(
        task.inputs, task.targets[:, 0], scale=scale * float(u[0]), feature_names=task.feature_names
    )


def _attention(task: Any, network: Any, kind: type) -> bool:
    return isinstance(network, kind) and isinstance(task, InContextRegression)


def _solve_attention(task: Any, network: Any, scale: float) -> Staircase:
    return linear_attention_staircase(task.covariance, task.context_length, scale=scale, neurons=network.neurons)


def _solve_merged_attention(task: Any, network: Any, scale: float) -> Staircase:
    return merged_attention_staircase(task.covariance, task.context_length, scale=scale, neurons=network.neurons)


THEORIES = (
    _Theory(
        kind="linear",
        domain="a two-layer linear network (TwoLayer with activation linear, or DeepLinear with one hidden layer)",
        fits=lambda task, network, _: isinstance(task, Task) and linear_layers(network) is not None,
        solve=_solve_linear,
        time_offset=2.2,
        time_floor=0.03,
        time_offset_reason="times are predicted up to an offset that hardly grows: 2.2/log(1/scale), at least 3 %",
        slope_tolerance=0.05,
        slope_reason="neighbouring modes still overlap at finite scale; on digits by up to 3 %",
    ),
    _Theory(
        kind="diagonal",
        domain="a diagonal linear network (DiagonalLinear)",
        fits=lambda task, network, _: isinstance(task, Task) and isinstance(network, DiagonalLinear),
        solve=_solve_diagonal,
        time_offset=2.2,
        time_floor=0.0,
        time_offset_reason="times are known up to an offset of first order: 2.2/log(1/scale) held for 99 % of jumps",
        slope_tolerance=0.01,
        slope_reason="where no plateau is slow, corrections to the slope are exponentially small",
    ),
    _Theory(
        kind="attention",
        domain="linear attention on in-context regression (LinearAttention on InContextRegression)",
        fits=lambda task, network, normalised: _attention(task, network, LinearAttention) and not normalised,
        solve=_solve_attention,
        time_offset=0.0,
        time_floor=0.05,
        time_offset_reason="what the times leave out falls with the scale, more slowly for close eigenvalues",
        slope_tolerance=0.02,
        slope_reason="what the times leave out changes little between the two scales",
    ),
    _Theory(
        kind="merged attention",
        domain="linear attention with merged keys and queries (MergedAttention on InContextRegression)",
        fits=lambda task, network, _: _attention(task, network, MergedAttention),
        solve=_solve_merged_attention,
        time_offset=0.5,
        time_floor=0.0,
        time_offset_reason="the time is known up to an offset that falls with the scale",
        slope_tolerance=0.01,
        slope_reason="corrections to the slope fall with the scale",
    ),
)


def _require_dimensions(task: Task, inputs: int, outputs: int) -> None:
    require(
        (inputs, outputs) == (task.input_dimension, task.output_dimension),
        f"the network maps {inputs} inputs to {outputs} outputs, the task has {task.input_dimension} inputs "
        f"and {task.output_dimension} targets",
        argument="network",
        value=(inputs, outputs),
        remedy="give both the same dimensions",
    )


def _name(network: Network) -> str:
    name = type(network).__name__
    return f"{name} with activation {network.activation.name}" if isinstance(network, TwoLayer) else name


def _judged_by(theory: _Theory, staircase: Staircase, task: Learnable, scale: float) -> xr.Dataset:
    offset = max(theory.time_offset / -np.log(scale), theory.time_floor)
    return staircase_record(
        staircase,
        task,
        scale=scale,
        network=theory.kind,
        jump_time_tolerance=(offset, theory.time_offset_reason),
        slope_tolerance=(theory.slope_tolerance, theory.slope_reason),
    )
