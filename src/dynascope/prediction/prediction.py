"""Predict how a network learns a task, with the theory that covers both."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

import numpy as np
import xarray as xr

from dynascope.errors import InputError
from dynascope.networks.diagonal_linear import DiagonalLinear
from dynascope.networks.kinds import NETWORKS, NetworkKind, is_specification
from dynascope.networks.user_module import at_unit_scale, user_network
from dynascope.prediction.alternating_flow import MAX_STEPS
from dynascope.prediction.candidate import Candidate, Measured, rank
from dynascope.prediction.case import Case, without_biases
from dynascope.prediction.cost import announce_needs, require_fitting_memory
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

_LARGEST = 1e20  # value of a sample; rates scale with its square, and gradients of the loss with its fourth power
_NEAR = {"almost": "which almost applies", "unknown": "which applies if the unmeasured assumptions hold"}


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
    """Predict what a network learns, in what order and when, under gradient flow from a small initialisation.

    `predict` uses a closed form if one is known for the task and network. For any other sum of homogeneous neurons, it
    uses alternating gradient flow (see `alternating.alternating_flow`), which integrates each small neuron.

    Args:
        task: The data, or an expectation in closed form; a pair (inputs, targets) or a scikit-learn data set is
            converted to a `Task`.
        network: A module with its weights at unit scale, the name of a kind ("linear", "diagonal", "relu", "quadratic",
            "attention"), or a `TwoLayer` without dimensions. Alternatively, your module with its initial weights: a
            `torch.nn.Sequential`, `equinox.nn.Sequential` or `equinox.nn.MLP` of two linear layers and a homogeneous
            activation between them, with or without biases.
        scale: Factor that multiplies the initial weights: below one, or so large that training is lazy and the theory
            "kernel-regression" applies. For a network given by name or without dimensions, the default is
            `prediction.default_scale`, which is 1e-8 for most networks. A module keeps its weights by default; their
            scale is their norm divided by the norm of weights at unit scale.
        seed: Seed of the initial weights if the network is given by name or without dimensions; the record then has the
            attribute `weights="drawn"`.
        normalised: Whether to predict the homogeneity-normalised flow instead, in which neurons of every degree grow
            exponentially.
        jumps: Maximum number of jumps; None for all.
        curve: Whether to also compute the loss curve at this scale, from which the errors of the predicted jumps are
            estimated.
        theory: Name of the theory, as listed by `which`; by default the first small-scale theory that covers the
            network.
        max_steps: Maximum number of integration steps in one phase of alternating gradient flow.

    Returns:
        The prediction: `jumps` is a table of the predicted jumps, and `record` contains everything as arrays. For a
        small scale, the record is a staircase, a sequence of loss plateaus and jumps (see `results.staircase_record`).
        For each jump it contains the time at this scale; the accelerated time, which is the small-scale limit of the
        time divided by `results.time_unit` (log(1/scale) for degree 2); the loss before and after; the learned feature,
        in terms of input and output names; and whether and why the jump is slow. If a jump involves several inputs,
        `learned_direction` contains the weight of each input in units of its standard deviation. The attribute
        `theory_choice` states why this theory was chosen, and `complete` is 1 if there are no further jumps. With
        `curve`, for samples and sums of homogeneous neurons, the record also contains `loss` over `time` (with the
        attribute `curve_error`) and the estimated error of each time and level. A theory that is exact at any scale
        predicts `loss` over `time` instead of jumps, and further quantities such as the linear map.

    Raises:
        InputError: No theory covers the task and network (the message lists the alternatives), or an argument is out of
            bounds.

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
    start, omits_biases = without_biases(start)
    options: dict[str, Any] = {"normalised": normalised, "jumps": jumps, "max_steps": max_steps}
    case = Case(task, start, scale=factor, omits_biases=omits_biases, **options)
    case.require_fitting()
    staircase = _computed(case, theory, measured=scale is None)
    if is_specification(network) and not isinstance(start, DiagonalLinear):
        staircase = staircase.assign_attrs(weights="drawn")
    staircase = with_doubts(with_units(staircase, task), task)
    if "jump" in staircase.dims:
        staircase = with_words(at_this_scale(staircase, task, start) if curve else staircase, task, start)
    return Prediction.of(staircase)


def _require_units(task: Task) -> None:
    """Reject data that are all zero, and data in units for which the flow would overflow."""
    for name, values in (("inputs", task.inputs), ("targets", task.targets)):
        largest = float(np.abs(values).max())
        require(
            largest > 0,
            f"all {name} of the task are zero, so there is nothing to learn",
            argument="task",
            value=0.0,
            remedy=f"give {name} that vary",
        )
        require(
            1 / _LARGEST <= largest <= _LARGEST,
            f"the largest of the {name} of the task has magnitude {largest:.1e}",
            argument="task",
            value=largest,
            remedy=f"choose units in which this magnitude is between {1 / _LARGEST:.0e} and {_LARGEST:.0e}, or "
            f"standardise the {name}",
        )


def _started(task: Any, network: Any, scale: float | None) -> tuple[Any, float]:
    """Convert a network to unit scale, and return it with its scale."""
    read = user_network(network)
    if read is not None:
        network, size = at_unit_scale(read)
        return network, size if scale is None else size * scale
    if scale is None:
        return (network, 1.0) if isinstance(network, Rows) else at_unit_scale(network)
    return network, scale


def _computed(case: Case, name: str | None, *, measured: bool) -> xr.Dataset:
    """Compute the record with the named theory, or with the one that fits best."""
    likely = _likely(case, name)
    if likely is not None:
        # Measuring the assumptions of a theory can take as much memory as the theory.
        require_fitting_memory(likely, case)
    candidate = chosen(case, name) if name is not None else _first(case, measured=measured)
    theory = candidate.theory
    if theory.staircase and case.scale >= 1:
        raise _large_scale(case, (), measured=measured)
    announce_needs(theory, case)
    record = theory.solve(case)
    notes = [f"{each}; {each.assumption.growth}." for each in candidate.violated if not _by_the_curve(each)]
    notes += [f"{each}; if it does not hold, {each.assumption.growth}." for each in candidate.unmeasured]
    warnings = [*record.attrs.get("warnings", []), *(each[0].upper() + each[1:] for each in notes)]
    attributes: dict[str, Any] = {
        "theory_name": theory.name,
        "equation": theory.equation,
        "theory_choice": _why(case, theory, selected=name is not None),
        "warnings": warnings,
    }
    if not theory.staircase:
        assert theory.domain is not None
        attributes |= {"theory": f"{theory.name}: {theory.gives}", "reference": theory.domain.reference}
    elif "complete" not in record.attrs:
        complete = case.jumps is None or record.sizes["jump"] <= case.jumps
        record, attributes["complete"] = record.isel(jump=slice(case.jumps and int(case.jumps))), int(complete)
    return record.assign_attrs(attributes)


def _large_scale(case: Case, others: Sequence[Candidate], *, measured: bool) -> InputError:
    """Return the error for weights that are too large for a staircase, if none of the other theories applies."""
    lazy = next((each for each in others if each.theory in KERNELS), None)
    reason = "not small (below 1)"
    if lazy is not None:
        reason = f"neither small (below 1) nor lazy ({'; '.join(map(str, (*lazy.violated, *lazy.unmeasured)))})"
    remedy = "choose a scale below one"
    if measured:
        remedy = "predict before training, from weights that are multiplied by a small common factor, such as 0.01"
    near = [each for each in sorted(others, key=rank) if each.status != "no"]
    if near:
        remedy += f", or select theory={near[0].name!r}, {_NEAR[near[0].status]}"
    elif lazy is not None:
        remedy += f", or one so large that {lazy.name} applies"
    problem = f"the weights have scale {case.scale:.3g}" if measured else f"scale is {case.scale}"
    return InputError(
        f"{problem}, at which no theory applies, because the initialisation is {reason}",
        argument="network" if measured else "scale",
        value=case.scale,
        remedy=remedy,
    )


def _likely(case: Case, name: str | None) -> Theory | None:
    """Guess the theory before its assumptions are measured."""
    if name is not None:
        return next((theory for theory in THEORIES if theory.name == name), None)
    others = (*CURVES, *KERNELS)
    usual = [theory for theory in STAIRCASES if not theory.special] if case.scale < 1 else []
    return next((theory for theory in (*usual, *others) if theory.fits(case)), None)


def _by_the_curve(measured: Measured) -> bool:
    """Whether the assumption is that of a small scale, whose violation the loss curve at this scale already shows."""
    return measured.assumption == SMALL_START and measured.almost is True


def _why(case: Case, theory: Theory, *, selected: bool) -> str:
    """State why this theory was chosen, and which other theories are exact for this case."""
    others = [each.name for each in fitting(case, CURVES) if each.status == "applies" and each.theory is not theory]
    first = (
        "is the first theory that covers this network at small scale"
        if theory.staircase
        else "is the first theory that applies"
    )
    why = "was selected by the user" if selected else first
    exact = f" Theories that are exact here at any scale: {', '.join(others)}." if others else ""
    return f"{theory.name} {why}.{exact}"


def _first(case: Case, *, measured: bool) -> Candidate:
    """Return the first small-scale theory that covers the case; the loss curve at this scale then estimates its error.

    If no such theory exists, or the scale is not below one, return the first of the other theories that applies. The
    same holds if the small-scale theory does not apply and an exact one does.
    """
    # A general theory reports its violated assumptions itself.
    small = (
        candidate
        for candidate in fitting(case, STAIRCASES)
        if not candidate.theory.special
        or all(each.assumption == SMALL_START for each in (*candidate.violated, *candidate.unmeasured))
    )
    first = next(small, None)
    if first is not None and case.scale < 1:
        exact = (each for each in fitting(case, CURVES) if each.status == "applies")
        return first if first.status != "no" else next(exact, first)
    others = tuple(fitting(case, (*CURVES, *KERNELS)))
    for candidate in others:
        if candidate.status == "applies":
            return candidate
    if first is not None:
        raise _large_scale(case, others, measured=measured)
    if len(others) == 1 and others[0].status == "no":
        only = others[0]
        raise InputError(
            f"{only.theory.name} is the only theory for this network ({case.name}), but it does not apply "
            f"({'; '.join(map(str, only.violated))})",
            argument="network",
            value=case.name,
            remedy="; ".join(dict.fromkeys(each.assumption.remedy for each in only.violated)),
        )
    near = [candidate for candidate in sorted(others, key=rank) if candidate.status != "no"]
    violated = dict.fromkeys(str(each) for candidate in others for each in (*candidate.violated, *candidate.unmeasured))
    raise InputError(
        f"no theory covers this network ({case.name})"
        + (f"; violated or unchecked assumptions: {'; '.join(violated)}" if violated else ""),
        argument="network",
        value=case.name,
        remedy=(f"select theory={near[0].name!r}, {_NEAR[near[0].status]}, or " if near else "")
        + f"choose one of these networks: {'; '.join(dict.fromkeys(theory.network for theory in THEORIES))}",
    )
