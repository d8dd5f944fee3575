"""A theory that is for a network, with what it assumes as it was measured; and all of them, the best first."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Sequence
from typing import Literal

from dynascope.prediction.theories.theory import Theory
from dynascope.prediction.which_text import in_words
from dynascope.theory.assumptions import EQUAL_RATES, FULL_BATCHES, SMALL_STEPS, Assumption

__all__ = ["TRAINING", "Candidate", "Candidates", "Measured", "rank"]

TRAINING = (SMALL_STEPS, EQUAL_RATES, FULL_BATCHES)  # theories are of gradient flow on all samples
_ORDER = ("applies", "almost", "unknown", "no")


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
    def holds(self) -> bool | None:
        """Whether it holds; None if it cannot be measured."""
        return None if self.value is None else self.value <= self.assumption.limit

    @property
    def almost(self) -> bool | None:
        """Whether it holds well enough for a rough answer; None if it cannot be measured."""
        return None if self.value is None else self.value <= self.assumption.almost

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
        status: "applies"; "almost"; "unknown", where nothing that could be measured is too far off and something
            could not be; or "no".
        assumptions: What it assumes, measured.
        cost: How long it takes, in words, estimated from the number of its operations.
        error: How far it may be off here, in words; nothing where that is not known, or told by what is violated.
        call: How to predict by it, given `task` and `network`. Nothing where the structure of the network is in the
            way.
        obstacle: What in the structure of the network is in the way, if that is known to be.
    """

    theory: Theory
    status: Literal["applies", "almost", "unknown", "no"]
    assumptions: tuple[Measured, ...] = ()
    cost: str = ""
    error: str = ""
    call: str = ""
    obstacle: str = ""

    @property
    def name(self) -> str:
        """By which to ask for it: `predict(..., theory=name)`."""
        return self.theory.name

    @property
    def training(self) -> tuple[Measured, ...]:
        """Those of the assumptions that are about the training, and the same for every theory."""
        return tuple(each for each in self.assumptions if each.assumption in TRAINING)

    @property
    def violated(self) -> tuple[Measured, ...]:
        """The assumptions that do not hold."""
        return tuple(each for each in self.assumptions if each.holds is False)

    @property
    def unmeasured(self) -> tuple[Measured, ...]:
        """The assumptions of which it is not known whether they hold."""
        return tuple(each for each in self.assumptions if each.holds is None)

    def __str__(self) -> str:
        return in_words([self], width=76)


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
        made = super().__new__(cls, sorted(found, key=rank))
        made.network, made.observing = network, tuple(observing)
        return made

    def as_text(self, *, width: int, command: Callable[[Candidate], str] | None = None) -> str:
        """Each with what it gives and how well, or with what is in the way.

        Args:
            width: Columns to fill; what is to be copied is never broken.
            command: What to type for one of them, if there is such a command.
        """
        return in_words(self, width=width, command=command)

    def __str__(self) -> str:
        said = self.as_text(width=76, command=lambda each: each.call)
        measured = "\n".join(f"    {line}" for line in self.observing)
        return f"{self.network}\n\n{said}\n\nWithout a theory, train and measure:\n\n{measured}"


def rank(candidate: Candidate) -> tuple[float, ...]:
    """By which candidates are ordered, the best first."""
    if candidate.obstacle:
        return len(_ORDER) - 1, 0.0, 0, 0
    order = _ORDER.index(candidate.status)
    worst = max((_excess(each) for each in candidate.violated), default=0.0)
    return order, worst if order else 0.0, not candidate.theory.exact, candidate.theory.domain is None


def _excess(measured: Measured) -> float:
    """How much of what is bearable is used up."""
    assert measured.value is not None
    bearable = measured.assumption.almost
    return measured.value / bearable if bearable > 0 else float("inf")
