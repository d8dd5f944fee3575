"""Find the theories that apply to a case, and measure their assumptions."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from typing import Annotated, Any, Literal

from dynascope.errors import InputError
from dynascope.networks.kinds import NETWORKS, NetworkKind, is_specification
from dynascope.networks.user_module import at_unit_scale, user_network
from dynascope.prediction.candidate import TRAINING, Candidate, Candidates, Measured, rank
from dynascope.prediction.case import Case, without_biases
from dynascope.prediction.initial_weights import with_weights
from dynascope.prediction.measures import violation
from dynascope.prediction.network_parts import (
    is_module,
    is_user_module,
    misfit_of,
    network_parts,
    readable,
    unread,
)
from dynascope.prediction.theories.catalogue import THEORIES
from dynascope.prediction.theories.theory import Theory
from dynascope.protocols import Network, SumOfNeurons
from dynascope.tasks.as_task import TaskLike, as_task
from dynascope.theory.assumptions import CENTRED_DATA, Assumption
from dynascope.validation import require
from dynascope.validation.bounded_scalars import PositiveFloat, PositiveInt, Seed

__all__ = ["candidates", "case_of", "chosen", "fitting", "require_network", "which"]

_PER_SECOND = 1e9  # operations on one core, within a factor of three: benchmarks/theory_costs.py
_LEAST = 5e6
_COSTS = ((1, "under a second"), (20, "seconds"), (300, "minutes"), (float("inf"), "an hour or more"))


def which(
    task: TaskLike,
    network: Annotated[Network | NetworkKind, NETWORKS],
    *,
    scale: PositiveFloat | None = None,
    learning_rate: PositiveFloat | Sequence[PositiveFloat] | None = None,
    batch_size: PositiveInt | None = None,
    normalised: bool = False,
    seed: Seed = 0,
    width: PositiveInt = 50,
) -> Candidates:
    """List the theories for a network and data: first those that apply, then those that almost apply, then the others.

    Every theory states its assumptions as measurable numbers (`theory.assumptions`), and this function measures them.
    Exact solutions come before small-scale limits, and smaller violations before larger ones.

    Args:
        task: The data, as for `predict`.
        network: A module with its weights at unit scale, the name of a kind, a `TwoLayer` without dimensions, or your
            module, as for `predict`. For any other PyTorch or equinox module, the result names its layers and the
            nearest theories, with the reasons why they do not apply.
        scale: Factor on the initial weights; by default as for `predict`.
        learning_rate: Learning rate of gradient descent, or one per layer; by default, gradient flow.
        batch_size: Batch size; by default, all samples.
        normalised: Whether the flow is homogeneity-normalised.
        seed: Seed of the initial weights if the network is given by name or without dimensions.
        width: Number of hidden neurons of a network given by name.

    Returns:
        A `Candidate` for each theory: name, predictions, status, measured assumptions, cost and the call that predicts
        with it. Print the result, or one candidate, for a readable summary. `observing` contains calls that measure the
        network without a theory.

    Raises:
        InputError: `network` is not a network, or an argument is out of bounds.

    Example:
        >>> import numpy as np
        >>> from dynascope.networks import balanced_linear
        >>> from dynascope.tasks import Task
        >>> x = np.random.default_rng(0).normal(size=(40, 3))
        >>> task = Task(x, x @ np.array([[1.0], [0.5], [0.0]])).whitened()
        >>> [(each.name, each.status) for each in which(task, balanced_linear(3, 4, 1), scale=0.5)][:2]
        [('balanced', 'applies'), ('isotropic', 'applies')]
    """
    training: dict[str, Any] = {"learning_rate": learning_rate, "batch_size": batch_size, "normalised": normalised}
    require_network(network)
    problem = unread(network)
    other = bool(problem) or (is_user_module(network) and user_network(network) is None)
    if other:
        case = Case(as_task(task), readable(network), scale=1.0 if scale is None else scale, **training)
    else:
        case = case_of(task, network, scale=scale, seed=seed, width=width, **training)
        scale = case.scale if is_specification(network) else scale
    options = ("" if scale is None else f", scale={float(scale)!r}") + (", normalised=True" if case.normalised else "")
    found = tuple(
        dataclasses.replace(each, call=f'predict(task, network{options}, theory="{each.name}")')
        for each in fitting(case)
    )
    if found and not other:
        jumps = any(each.theory.staircase and each.status != "no" for each in found)
        return Candidates(found, network=case.name, observing=_observing(case, scale, predicted=jumps))
    if not is_module(network):
        raise InputError(
            f"no theory covers this network ({case.name}) on these data",
            argument="network",
            value=case.name,
            remedy=f"choose one of these networks: {'; '.join(dict.fromkeys(theory.network for theory in THEORIES))}",
        )
    misfit = "" if found else misfit_of(case.task, case.network)
    parts = network_parts(network, problem)
    reasons = dict(parts.obstacles)
    if misfit:
        reasons.setdefault("kernel-regression", misfit)
    named = {theory.name: theory for theory in THEORIES}
    near = [Candidate(named[name], "no", obstacle=reason) for name, reason in reasons.items()]
    known = {candidate.name for candidate in found}
    return Candidates(
        [*found, *(each for each in near if each.name not in known)],
        network=parts.name,
        observing=parts.observing,
    )


def require_network(network: Any) -> None:
    """Reject anything except a module or the name of a kind of network."""
    if isinstance(network, type):
        raise InputError(
            f"network is the class {network.__name__}",
            argument="network",
            value=network.__name__,
            remedy=f"give an instance, such as {network.__name__}(…) with its arguments",
        )
    if not isinstance(network, str) and not is_module(network) and not isinstance(network, SumOfNeurons):
        raise InputError(
            f"network has type {type(network).__name__}, which is not a network",
            argument="network",
            value=type(network).__name__,
            remedy=f"give {NETWORKS}",
        )


def _observing(case: Case, scale: float | None, *, predicted: bool) -> tuple[str, ...]:
    """Return calls that train and measure a network of this package, or a convertible user module."""
    # By default, training ends after the last predicted jump.
    fields = ([] if predicted else ["duration=DURATION"]) + (["normalised=True"] if case.normalised else [])
    option = "" if scale is None else f", scale={float(scale)!r}"
    method = f", method=GradientFlow({', '.join(fields)})" if fields else ""
    return (f"observe(task, network{method}{option})",)


def case_of(
    task: Any,
    network: Any,
    *,
    scale: float | None = None,
    seed: int = 0,
    width: int = 50,
    **training: Any,
) -> Case:
    """Make a case from the user's arguments."""
    task = as_task(task)
    normalised = bool(training.get("normalised"))
    network, scale = with_weights(task, network, scale, seed=seed, width=width, normalised=normalised)
    read = user_network(network)
    if read is not None:
        network, size = at_unit_scale(read)
        scale = size if scale is None else scale * size
    elif scale is None:
        network, scale = at_unit_scale(network)
    network, omits_biases = without_biases(network)
    case = Case(task, network, scale=scale, omits_biases=omits_biases, **training)
    case.require_fitting()
    return case


def candidates(case: Case) -> tuple[Candidate, ...]:
    """Return the theories for this network, the best first."""
    return tuple(sorted(fitting(case), key=rank))


def fitting(case: Case, theories: Sequence[Theory] = THEORIES) -> Iterator[Candidate]:
    """Yield the theories for this network in catalogue order, measured lazily."""
    known: dict[str, float | None] = {}

    def measured(assumption: Assumption) -> Measured:
        if assumption.name not in known:
            known[assumption.name] = violation(assumption, case)
        return Measured(assumption, known[assumption.name])

    for theory in theories:
        if theory.fits(case):
            centred = (CENTRED_DATA,) if case.omits_biases else ()
            assumed = (*theory.assumes, *theory.assumes_too(case), *centred, *TRAINING)
            yield _candidate(theory, case, tuple(map(measured, assumed)))


def _candidate(theory: Theory, case: Case, assumptions: tuple[Measured, ...]) -> Candidate:
    status: Literal["applies", "almost", "unknown", "no"] = "no"
    if all(each.holds for each in assumptions):
        status = "applies"
    elif all(each.almost for each in assumptions):
        status = "almost"
    elif all(each.almost is not False for each in assumptions):
        status = "unknown"
    cost = _cost((_LEAST + theory.operations(case)) / _PER_SECOND, theory.cost_factor)
    known = status == "applies" or (
        status != "no" and theory.staircase
    )  # the error of a staircase depends on the scale
    return Candidate(theory, status, assumptions, cost, theory.accuracy(case) if known else "")


def _cost(seconds: float, factor: float) -> str:
    """Describe a run time that is known up to a factor."""
    least, most = (
        next(words for limit, words in _COSTS if each <= limit) for each in (seconds / factor, seconds * factor)
    )
    return most if least == most else f"from {least} to {most}"


def chosen(case: Case, name: str) -> Candidate:
    """Return the theory with this name, if it covers the case and no assumption is violated too much."""
    found = {candidate.name: candidate for candidate in candidates(case)}
    require(
        name in found,
        f"the theory {name!r} does not cover this network ({case.name}) on these data"
        if name in [theory.name for theory in THEORIES]
        else f"there is no theory {name!r}",
        argument="theory",
        value=name,
        remedy=f"choose {' or '.join(found) or 'another network'}",
    )
    candidate = found[name]
    broken = [each for each in candidate.violated if each.almost is False]
    require(
        not broken,
        f"the theory {name!r} does not apply here ({'; '.join(map(str, broken))})",
        argument="theory",
        value=name,
        remedy=f"{broken[0].assumption.remedy}, or use dynascope.which to find another theory" if broken else "",
    )
    return candidate
