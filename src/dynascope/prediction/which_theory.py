"""Which theory covers a case: all that apply, those that almost do, and by how much what they assume is violated."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal

from dynascope.arguments import require
from dynascope.errors import InputError
from dynascope.networks.kinds import NetworkKind, network_for
from dynascope.networks.own_module import at_unit_scale, own_network
from dynascope.prediction.case import Case
from dynascope.prediction.measures import violation
from dynascope.prediction.structure import is_foreign, is_module, readable, structure_of, unread
from dynascope.prediction.theories.catalogue import THEORIES
from dynascope.prediction.theories.theory import Theory
from dynascope.protocols import Dimensioned, Learnable, Network
from dynascope.tasks.as_task import as_task
from dynascope.theory.assumptions import FULL_BATCHES, SMALL_STEPS, Assumption

__all__ = ["Candidate", "Candidates", "Measured", "candidates", "case_of", "chosen", "fitting", "which"]

_TRAINING = (SMALL_STEPS, FULL_BATCHES)  # theories are of gradient flow on all samples
_PER_SECOND = 1e9
_COSTS = ((1, "under a second"), (20, "seconds"), (300, "minutes"), (float("inf"), "an hour or more"))


@dataclasses.dataclass(frozen=True)
class Measured:
    """An assumption of a theory, and how far a case is from it.

    Attributes:
        assumption: What is assumed.
        value: How far the case is from it; None if that cannot be measured on it.
    """

    assumption: Assumption
    value: float | None

    @property
    def holds(self) -> bool:
        """Whether it holds, or cannot be measured."""
        return self.value is None or self.value <= self.assumption.limit

    @property
    def almost(self) -> bool:
        """Whether it holds well enough for a rough answer."""
        return self.value is None or self.value <= self.assumption.almost

    def __str__(self) -> str:
        if self.value is None:
            return f"{self.assumption.name}: not measured"
        compared = "within" if self.holds else "beyond"
        return f"{self.assumption.name}: {self.value:.3g} ({compared} {self.assumption.limit:g})"


@dataclasses.dataclass(frozen=True)
class Candidate:
    """A theory that is for such a network, and how far the case is from what it assumes.

    Attributes:
        theory: The theory.
        status: "applies", "almost" or "no".
        assumptions: What it assumes, measured.
        cost: How long it takes, in words, estimated from the number of its operations.
        call: How to call its function oneself, given `task` and `network`; what is in capitals is to be filled in.
            Nothing where the structure of the network is in the way.
        obstacle: What in the structure of the network is in the way, if that is known to be.
    """

    theory: Theory
    status: Literal["applies", "almost", "no"]
    assumptions: tuple[Measured, ...]
    cost: str
    call: str
    obstacle: str = ""

    @property
    def name(self) -> str:
        """By which to ask for it: `predict(..., theory=name)`."""
        return self.theory.name

    @property
    def training(self) -> tuple[Measured, ...]:
        """Those of the assumptions that are about the training, and the same for every theory."""
        return tuple(each for each in self.assumptions if each.assumption in _TRAINING)

    @property
    def violated(self) -> tuple[Measured, ...]:
        """The assumptions that do not hold."""
        return tuple(each for each in self.assumptions if not each.holds)

    def __str__(self) -> str:
        head = {"applies": "applies", "almost": "almost applies", "no": "does not apply"}[self.status]
        lines = [f"{self.name} {head} ({self.theory.kind}): {self.theory.gives}"]
        lines += [f"  {self.obstacle}"] if self.obstacle else []
        lines += [f"  {each}; {each.assumption.growth}" for each in self.violated]
        return "\n".join([*lines, *([f"  {self.call}"] if self.call else [])])


class Candidates(tuple[Candidate, ...]):
    """The theories of such networks, the best first, and what can be done without any.

    Attributes:
        network: What the network is.
        observing: Calls that measure it whatever it is, given `task` and `network`; what is in capitals is to be
            filled in.
    """

    network: str
    observing: tuple[str, ...]

    def __new__(cls, found: Iterable[Candidate], *, network: str, observing: Sequence[str]) -> Candidates:
        """The candidates, ranked."""
        made = super().__new__(cls, sorted(found, key=_rank))
        made.network, made.observing = network, tuple(observing)
        return made

    def __str__(self) -> str:
        observing = "\n".join(["Without a theory it is measured by", *(f"  {each}" for each in self.observing)])
        return "\n\n".join([self.network, *map(str, self), observing])


def which(
    task: Learnable | Sequence[Any] | Mapping[str, Any],
    network: Network | NetworkKind,
    *,
    scale: float | None = None,
    learning_rate: float | None = None,
    batch_size: int | None = None,
    normalised: bool = False,
    seed: int = 0,
    width: int = 50,
) -> Candidates:
    """Which theories cover a network on these data: those that apply first, then those that almost do, then the others.

    Every theory states what it assumes as numbers that can be measured (`theory.assumptions`); here they are measured.
    Exact solutions come before limits of small starts, and what is violated less before what is violated more.

    Args:
        task: The data, as `predict` takes them.
        network: A module with its weights at unit scale, the name of a kind, or one of your own, as `predict` takes it.
            Any other module of PyTorch or equinox is told by its parts what it is, which theories are nearest and
            what is in their way.
        scale: Factor on the weights at the start. If not given, the weights are those of the start, and their scale is
            measured.
        learning_rate: Of gradient descent; gradient flow if not given.
        batch_size: Samples in a batch; all if not given.
        normalised: Whether the flow is the homogeneity-normalised one.
        seed: Seed of the initial weights when the network is given by name.
        width: Its number of hidden neurons.

    Returns:
        A `Candidate` for each theory of such networks: its name, what it gives, its status, each assumption with the
        measured number, its cost and the call that computes it. All together, and each, print well; `observing` has
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
    problem = unread(network)
    other = bool(problem) or (is_foreign(network) and own_network(network) is None)
    if other:
        case = Case(as_task(task), readable(network), scale=1.0 if scale is None else scale, **training)
    else:
        case = case_of(task, network, scale=scale, seed=seed, width=width, **training)
    found = tuple(fitting(case))
    if found and not other:
        return Candidates(found, network=case.name, observing=_observing(case))
    if not is_module(network):
        raise InputError(
            f"no theory here is for a {case.name} on such data",
            argument="network",
            value=case.name,
            remedy=f"choose one of: {'; '.join(dict.fromkeys(theory.network for theory in THEORIES))}",
        )
    structure = structure_of(network, problem)
    reasons = dict(structure.obstacles)
    if not found and isinstance(case.task, Dimensioned):
        sizes = f"{case.task.input_dimension} inputs with {case.task.output_dimension} outputs"
        reasons.setdefault("kernel-regression", f"it is no function of rows of {sizes}, or not in JAX")
    near = [_near(theory, reasons[theory.name]) for theory in THEORIES if theory.name in reasons]
    known = {candidate.name for candidate in found}
    return Candidates(
        [*found, *(each for each in near if each.name not in known)],
        network=structure.name,
        observing=structure.observing,
    )


def _near(theory: Theory, obstacle: str) -> Candidate:
    return Candidate(theory, "no", (), "", "", obstacle)


def _observing(case: Case) -> tuple[str, ...]:
    """Calls that train and measure a network of this package."""
    kernel = "probes.kernel.neural_tangent_kernel(lambda network, x: network(x), network, task.inputs)"
    return (
        f"observe(task, network, scale={case.scale:g}, duration=TIME)",
        *([kernel] if case.samples is not None else []),
    )


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
    if isinstance(network, str):
        require(scale is not None, "scale is not given", argument="scale", remedy="choose a number below one")
        network = network_for(network, task, width=width, seed=seed)  # pyright: ignore[reportArgumentType]
    own = own_network(network)
    if own is not None:
        network = own
    if scale is None:
        network, scale = at_unit_scale(network)
    return Case(task, network, scale=scale, **training)


def candidates(case: Case) -> tuple[Candidate, ...]:
    """The theories of such networks, the best first."""
    return tuple(sorted(fitting(case), key=_rank))


def fitting(case: Case, theories: Sequence[Theory] = THEORIES) -> Iterator[Candidate]:
    """The theories of such networks one by one, in their own order; measured when they are asked for."""
    known: dict[str, float | None] = {}

    def measured(assumption: Assumption) -> Measured:
        if assumption.name not in known:
            known[assumption.name] = violation(assumption, case)
        return Measured(assumption, known[assumption.name])

    for theory in theories:
        if theory.fits(case):
            yield _candidate(theory, case, tuple(map(measured, (*theory.assumes, *_TRAINING))))


def _candidate(theory: Theory, case: Case, assumptions: tuple[Measured, ...]) -> Candidate:
    status: Literal["applies", "almost", "no"] = "no"
    if all(each.holds for each in assumptions):
        status = "applies"
    elif all(each.almost for each in assumptions):
        status = "almost"
    seconds = theory.operations(case) / _PER_SECOND
    cost = next(words for most, words in _COSTS if seconds <= most)
    return Candidate(theory, status, assumptions, cost, _call(theory, case))


def _call(theory: Theory, case: Case) -> str:
    return theory.call.replace("SCALE", f"{case.scale:g}").replace("NORMALISED", str(case.normalised))


def _rank(candidate: Candidate) -> tuple[float, ...]:
    order = ("applies", "almost", "no").index(candidate.status)
    worst = max((_excess(each) for each in candidate.violated), default=0.0)
    return order, worst if order else 0.0, not candidate.theory.exact, candidate.theory.domain is None


def _excess(measured: Measured) -> float:
    """How much of what is bearable is used up."""
    assert measured.value is not None
    bearable = measured.assumption.almost
    return measured.value / bearable if bearable > 0 else float("inf")


def chosen(case: Case, name: str) -> Candidate:
    """The theory of that name, if it is for such networks and not too far from what it assumes."""
    found = {candidate.name: candidate for candidate in candidates(case)}
    require(
        name in found,
        f"the theory {name!r} is not for a {case.name} on such data",
        argument="theory",
        value=name,
        remedy=f"choose {' or '.join(found) or 'another network'}",
    )
    candidate = found[name]
    broken = [each for each in candidate.violated if not each.almost]
    require(
        not broken,
        f"the theory {name!r} does not hold here: {'; '.join(map(str, broken))}",
        argument="theory",
        value=name,
        remedy=f"{broken[0].assumption.remedy}, or choose another theory: dynascope.which" if broken else "",
    )
    return candidate
