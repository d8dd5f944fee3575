"""Predict: the theory that fits a task and a network, with the warnings that its use requires."""

from __future__ import annotations

from typing import Annotated, Any

import numpy as np
import xarray as xr

from dynascope.errors import InputError
from dynascope.networks.diagonal_linear import DiagonalLinear
from dynascope.networks.kinds import NETWORKS, NetworkKind, is_specification
from dynascope.networks.user_module import at_unit_scale, user_network
from dynascope.prediction.alternating_flow import MAX_STEPS
from dynascope.prediction.candidate import Candidate, Measured, rank
from dynascope.prediction.case import Case
from dynascope.prediction.cost import announce_needs
from dynascope.prediction.doubtful_data import with_doubts
from dynascope.prediction.finite_scale import at_this_scale
from dynascope.prediction.initial_weights import with_weights
from dynascope.prediction.learned_features import with_words
from dynascope.prediction.network_parts import Rows, readable, unread
from dynascope.prediction.theories.catalogue import THEORIES
from dynascope.prediction.theories.curves import CURVES
from dynascope.prediction.theories.kernel_regression import KERNELS
from dynascope.prediction.theories.staircases import STAIRCASES
from dynascope.prediction.theories.theory import Theory
from dynascope.prediction.unit_dependence import with_units
from dynascope.prediction.which_theory import chosen, fitting, require_network
from dynascope.protocols import Network
from dynascope.results import Prediction
from dynascope.tasks.as_task import TaskLike, as_task
from dynascope.tasks.task import Task
from dynascope.theory.assumptions import SMALL_START
from dynascope.validation import require
from dynascope.validation.bounded_scalars import PositiveFloat, PositiveInt, Seed

__all__ = ["predict"]

_LARGEST = 1e20  # value of a sample; rates are as its square, and slopes of the loss as the fourth power


def predict(
    task: TaskLike,
    network: Annotated[Network | NetworkKind, NETWORKS],
    *,
    scale: PositiveFloat | None = None,
    seed: Seed = 0,
    normalised: bool = False,
    jumps: PositiveInt | None = None,
    curve: bool = True,
    theory: str | None = None,
    max_steps: PositiveInt = MAX_STEPS,
) -> Prediction:
    """Predict what a network trained by gradient flow from small initialisation learns, in what order and when.

    Where a closed form is known for the pair of task and network it is used; any other sum of homogeneous neurons is
    predicted by alternating gradient flow (see `alternating.alternating_flow`), which follows each small neuron on the
    data.

    Args:
        task: The data, or an expectation in closed form; a pair (inputs, targets), or a data set of
            scikit-learn, is what `Task` makes of it.
        network: A module with its weights at unit scale, the name of a kind ("linear", "diagonal", "relu",
            "quadratic", "attention"), or a `TwoLayer` without dimensions. Or a module of yours with its initial
            weights: a `torch.nn.Sequential`, `equinox.nn.Sequential` or `equinox.nn.MLP` of two linear layers without
            bias and a homogeneous function between them.
        scale: Factor on the initial weights, below one. By default `prediction.default_scale`, which is 1e-8 for most
            networks, if the network is given by name or without dimensions. A module then starts from its weights, and
            their scale is measured: their norm over that of weights at unit scale.
        seed: Seed of the initial weights when the network is given by name or without dimensions; the record then says
            `weights="drawn"`.
        normalised: Whether to predict the homogeneity-normalised flow instead, in which neurons of every degree grow
            exponentially.
        jumps: Number of jumps after which to stop; None for all.
        curve: Whether to follow the loss at this scale too, which says how far each jump of the limit is off there.
        theory: Name of the theory to use, as `which` lists them; by default the first that covers such a network from a
            small start.
        max_steps: Steps after which a phase of alternating gradient flow is given up.

    Returns:
        The prediction: `jumps` is a table of the predicted jumps, `record` holds everything as arrays. For a small
        start the record is a staircase (see `results.staircase_record`). For each jump it has the time at this scale;
        the accelerated time, which is the limit of the time over `results.time_unit` (log(1/scale) for degree 2) as the
        scale goes to zero; the loss before and after; what is learned, in the names of the inputs and outputs; and
        whether and why the jump is slow. `learned_direction` holds the weight of each input in units of its spread
        where a jump involves several inputs. The attribute `theory_choice` states why this theory was chosen, and
        `complete` is 1 if there are no further jumps. With `curve`, for samples and sums of homogeneous neurons, the
        record also holds `loss` over `time` (with the attribute `curve_error`) and how far each time and level may be
        off at this scale. A theory that is exact from any start gives `loss` over `time` instead of jumps, and further
        quantities such as the linear map.

    Raises:
        InputError: No theory fits the pair (the message lists what does), or an argument is outside its domain.

    Example:
        >>> import numpy as np
        >>> task = Task(np.eye(2) * 2**0.5, np.diag([4.0, 1.0]) * 2**0.5, name="two modes")
        >>> staircase = predict(task, "linear", scale=1e-8)
        >>> staircase["accelerated_time"].to_numpy(), staircase["loss_after"].to_numpy()
        (array([0.25, 1.  ]), array([0.5, 0. ]))
    """
    task = as_task(task)
    if isinstance(task, Task):
        _require_units(task)
    if not isinstance(network, str):
        require_network(network)
    start, scale = with_weights(task, network, scale, seed=seed, normalised=normalised)
    start, factor = _started(task, readable(start) if theory is not None and unread(start) else start, scale)
    case = Case(task, start, scale=factor, normalised=normalised, jumps=jumps, max_steps=max_steps)
    case.require_fitting()
    staircase = _computed(case, theory, measured=scale is None)
    if is_specification(network) and not isinstance(start, DiagonalLinear):
        staircase = staircase.assign_attrs(weights="drawn")
    staircase = with_doubts(with_units(staircase, task), task)
    if "jump" in staircase.dims:
        staircase = with_words(at_this_scale(staircase, task, start) if curve else staircase, task, start)
    return Prediction.of(staircase)


def _require_units(task: Task) -> None:
    """Refuse units in which a flow, followed in real time, leaves the floating-point numbers."""
    for name, values in (("inputs", task.inputs), ("targets", task.targets)):
        largest = float(np.abs(values).max())
        require(
            largest == 0 or 1 / _LARGEST <= largest <= _LARGEST,
            f"the {name} of the task are as large as {largest:.1e}",
            argument="task",
            value=largest,
            remedy=f"choose units in which they are between {1 / _LARGEST:.0e} and {_LARGEST:.0e}, or standardise them",
        )


def _started(task: Any, network: Any, scale: float | None) -> tuple[Any, float]:
    """A network that theory knows, with its weights at unit scale, and the scale that it starts from."""
    read = user_network(network)
    if read is not None:
        network, size = at_unit_scale(read)
        return network, size if scale is None else size * scale
    if scale is None:
        return (network, 1.0) if isinstance(network, Rows) else at_unit_scale(network)
    return network, scale


def _computed(case: Case, name: str | None, *, measured: bool) -> xr.Dataset:
    """The record of the theory of that name, or of the one that fits best."""
    first = _likely(case, name)
    if first is not None:
        announce_needs(first, case)
    candidate = chosen(case, name) if name is not None else _first(case)
    theory = candidate.theory
    if theory.staircase:
        require(
            case.scale < 1,
            f"the weights are those of scale {case.scale:.3g}" if measured else f"scale is {case.scale}",
            argument="network" if measured else "scale",
            value=case.scale,
            remedy="predict before training, from small weights: multiply them all by one factor, such as 0.01"
            if measured
            else "choose a number below one",
        )
    record = theory.solve(case)
    told = [f"{each}; {each.assumption.growth}." for each in candidate.violated if not _by_the_curve(each)]
    told += [f"{each}; if it does not hold, {each.assumption.growth}." for each in candidate.unmeasured]
    warnings = [*record.attrs.get("warnings", []), *(each[0].upper() + each[1:] for each in told)]
    attributes: dict[str, Any] = {
        "theory_name": theory.name,
        "equation": theory.equation,
        "theory_choice": _why(case, theory, asked=name is not None),
        "warnings": warnings,
    }
    if not theory.staircase:
        assert theory.domain is not None
        attributes |= {"theory": f"{theory.name}: {theory.gives}", "reference": theory.domain.reference}
    elif "complete" not in record.attrs:
        complete = case.jumps is None or record.sizes["jump"] <= case.jumps
        record, attributes["complete"] = record.isel(jump=slice(case.jumps and int(case.jumps))), int(complete)
    return record.assign_attrs(attributes)


def _likely(case: Case, name: str | None) -> Theory | None:
    """The theory that it will probably be, before anything is measured."""
    if name is not None:
        return next((theory for theory in THEORIES if theory.name == name), None)
    others = (*CURVES, *KERNELS)
    usual = [theory for theory in STAIRCASES if not theory.special] if case.scale < 1 else []
    return next((theory for theory in (*usual, *others) if theory.fits(case)), None)


def _by_the_curve(measured: Measured) -> bool:
    """Whether it is the size of the start, of which the curve at this scale says how far off jumps are."""
    return measured.assumption == SMALL_START and measured.almost is True


def _why(case: Case, theory: Theory, *, asked: bool) -> str:
    """Why this theory, and which others are exact here."""
    others = [each.name for each in fitting(case, CURVES) if each.status == "applies" and each.theory is not theory]
    first = (
        "is the first that covers such a network from a small start"
        if theory.staircase
        else "is the first that applies"
    )
    why = "was asked for" if asked else first
    return f"{theory.name} {why}." + (f" Exact here, from any start: {', '.join(others)}." if others else "")


def _first(case: Case) -> Candidate:
    """The first theory of small starts that covers the case; the scale is left to the curve, which says how far off.

    Where none is for such a network, or the start is not small at all, the first of the others that applies.
    """
    # A theory that is not for special data says itself what is in the way.
    small = (
        candidate
        for candidate in fitting(case, STAIRCASES)
        if not candidate.theory.special
        or all(each.assumption == SMALL_START for each in (*candidate.violated, *candidate.unmeasured))
    )
    first = next(small, None)
    if first is not None and case.scale < 1:
        return first
    others = tuple(fitting(case, (*CURVES, *KERNELS)))
    for candidate in others:
        if candidate.status == "applies":
            return candidate
    if first is not None:
        return first
    if len(others) == 1 and others[0].status == "no":
        only = others[0]
        raise InputError(
            f"{only.theory.name} is the only theory for a {case.name}, and it does not apply "
            f"({'; '.join(map(str, only.violated))})",
            argument="network",
            value=case.name,
            remedy="; ".join(dict.fromkeys(each.assumption.remedy for each in only.violated)),
        )
    near = [candidate for candidate in sorted(others, key=rank) if candidate.status != "no"]
    violated = dict.fromkeys(str(each) for candidate in others for each in (*candidate.violated, *candidate.unmeasured))
    how = {"almost": "which almost does", "unknown": "which does if what was not measured holds"}
    raise InputError(
        f"no theory here predicts a {case.name}" + (f" ({'; '.join(violated)})" if violated else ""),
        argument="network",
        value=case.name,
        remedy=(f"ask for the theory {near[0].name}, {how[near[0].status]}, or " if near else "")
        + f"choose a network that is {'; or '.join(dict.fromkeys(theory.network for theory in THEORIES))}",
    )
