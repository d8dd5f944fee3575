"""Which theory covers a case: all that apply, those that almost do, and by how much what they assume is violated."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from typing import Annotated, Any, Literal

from dynascope.errors import InputError
from dynascope.networks.kinds import NETWORKS, NetworkKind, is_specification
from dynascope.networks.user_module import at_unit_scale, user_network
from dynascope.prediction.candidate import TRAINING, Candidate, Candidates, Measured, rank
from dynascope.prediction.case import Case
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
from dynascope.theory.assumptions import Assumption
from dynascope.validation import require
from dynascope.validation.bounded_scalars import PositiveFloat, PositiveInt, Seed

__all__ = ["candidates", "case_of", "chosen", "fitting", "require_network", "which"]

_PER_SECOND = 1e9  # to a factor of three on one core: benchmarks/theory_costs.py
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
    """Which theories cover a network on these data: those that apply first, then those that almost do, then the others.

    Every theory states what it assumes as numbers that can be measured (`theory.assumptions`); here they are measured.
    Exact solutions come before limits of small starts, and what is violated less before what is violated more.

    Args:
        task: The data, as `predict` takes them.
        network: A module with its weights at unit scale, the name of a kind, a `TwoLayer` without dimensions, or a
            module of yours, as `predict` takes it.
            Any other module of PyTorch or equinox is told by its parts what it is, which theories are nearest and
            what is in their way.
        scale: Factor on the initial weights; by default as for `predict`.
        learning_rate: Of gradient descent, or that of each layer; gradient flow if not given.
        batch_size: Samples in a batch; all if not given.
        normalised: Whether the flow is the homogeneity-normalised one.
        seed: Seed of the initial weights when the network is given by name or without dimensions.
        width: Number of hidden neurons of a network that is given by name.

    Returns:
        A `Candidate` for each theory of such networks: its name, what it gives, its status, each assumption with the
        measured number, its cost and the call that predicts by it. All together, and each, print well; `observing` has
        the calls that measure the network without a theory.

    Raises:
        InputError: The network is none, or an argument is outside its domain.

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
    said = ("" if scale is None else f", scale={float(scale)!r}") + (", normalised=True" if case.normalised else "")
    found = tuple(
        dataclasses.replace(each, call=f'predict(task, network{said}, theory="{each.name}")') for each in fitting(case)
    )
    if found and not other:
        jumps = any(each.theory.staircase and each.status != "no" for each in found)
        return Candidates(found, network=case.name, observing=_observing(case, scale, predicted=jumps))
    if not is_module(network):
        raise InputError(
            f"no theory here is for a {case.name} on such data",
            argument="network",
            value=case.name,
            remedy=f"choose one of: {'; '.join(dict.fromkeys(theory.network for theory in THEORIES))}",
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
    """Reject what is neither the name of a kind of network nor a module."""
    if isinstance(network, type):
        raise InputError(
            f"network is the class {network.__name__}",
            argument="network",
            value=network.__name__,
            remedy=f"give an instance of it, such as {network.__name__}(…) with its arguments",
        )
    if not isinstance(network, str) and not is_module(network) and not isinstance(network, SumOfNeurons):
        raise InputError(
            f"network is a {type(network).__name__}, and not a network",
            argument="network",
            value=type(network).__name__,
            remedy=f"give {NETWORKS}",
        )


def _observing(case: Case, scale: float | None, *, predicted: bool) -> tuple[str, ...]:
    """Calls that train and measure a network of this package, or a user's that is read."""
    # It is trained to beyond the last jump, if jumps are known.
    fields = ([] if predicted else ["duration=DURATION"]) + (["normalised=True"] if case.normalised else [])
    said = "" if scale is None else f", scale={float(scale)!r}"
    method = f", method=GradientFlow({', '.join(fields)})" if fields else ""
    return (f"observe(task, network{method}{said})",)


def case_of(
    task: Any,
    network: Any,
    *,
    scale: float | None = None,
    seed: int = 0,
    width: int = 50,
    **training: Any,
) -> Case:
    """The case of data and a network as users give them."""
    task = as_task(task)
    normalised = bool(training.get("normalised"))
    network, scale = with_weights(task, network, scale, seed=seed, width=width, normalised=normalised)
    read = user_network(network)
    if read is not None:
        network, size = at_unit_scale(read)
        scale = size if scale is None else scale * size
    elif scale is None:
        network, scale = at_unit_scale(network)
    case = Case(task, network, scale=scale, **training)
    case.require_fitting()
    return case


def candidates(case: Case) -> tuple[Candidate, ...]:
    """The theories of such networks, the best first."""
    return tuple(sorted(fitting(case), key=rank))


def fitting(case: Case, theories: Sequence[Theory] = THEORIES) -> Iterator[Candidate]:
    """The theories of such networks one by one, in their own order; measured when they are asked for."""
    known: dict[str, float | None] = {}

    def measured(assumption: Assumption) -> Measured:
        if assumption.name not in known:
            known[assumption.name] = violation(assumption, case)
        return Measured(assumption, known[assumption.name])

    for theory in theories:
        if theory.fits(case):
            assumed = (*theory.assumes, *theory.assumes_too(case), *TRAINING)
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
    known = status == "applies" or (status != "no" and theory.staircase)  # whose error grows with the start
    return Candidate(theory, status, assumptions, cost, theory.accuracy(case) if known else "")


def _cost(seconds: float, factor: float) -> str:
    """A time that is known to a factor, in words."""
    least, most = (
        next(words for limit, words in _COSTS if each <= limit) for each in (seconds / factor, seconds * factor)
    )
    return most if least == most else f"from {least} to {most}"


def chosen(case: Case, name: str) -> Candidate:
    """The theory of that name, if it is for such networks and not too far from what it assumes."""
    found = {candidate.name: candidate for candidate in candidates(case)}
    require(
        name in found,
        f"the theory {name!r} is not for a {case.name} on such data"
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
        f"the theory {name!r} does not hold here: {'; '.join(map(str, broken))}",
        argument="theory",
        value=name,
        remedy=f"{broken[0].assumption.remedy}, or choose another theory: dynascope.which" if broken else "",
    )
    return candidate
