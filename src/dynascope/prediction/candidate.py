"""Candidate theories for a case, with their measured assumptions."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Sequence
from typing import Literal

from dynascope.prediction.theories.theory import Theory
from dynascope.prediction.which_text import theories_text
from dynascope.theory.assumptions import EQUAL_RATES, FULL_BATCHES, SMALL_STEPS, Assumption

__all__ = ["TRAINING", "Candidate", "Candidates", "Measured", "rank"]

TRAINING = (SMALL_STEPS, EQUAL_RATES, FULL_BATCHES)  # theories assume gradient flow on all samples
_ORDER = ("applies", "almost", "unknown", "no")


@dataclasses.dataclass(frozen=True)
class Measured:
    """A measured assumption of a theory.

    Attributes:
        assumption: The assumption.
        value: The measured violation; None if it cannot be measured.
    """

    assumption: Assumption
    value: float | None

    @property
    def holds(self) -> bool | None:
        """Whether the assumption holds; None if it cannot be measured."""
        return None if self.value is None else self.value <= self.assumption.limit

    @property
    def almost(self) -> bool | None:
        """Whether the assumption holds well enough for a rough prediction; None if it cannot be measured."""
        return None if self.value is None else self.value <= self.assumption.almost

    def __str__(self) -> str:
        if self.value is None:
            return f"{self.assumption.name}: not measured"
        compared = "within" if self.holds else "above"
        return f"{self.assumption.name}: {self.value:.3g} ({compared} the limit {self.assumption.limit:g})"


@dataclasses.dataclass(frozen=True)
class Candidate:
    """A theory for a kind of network, with its measured assumptions.

    Attributes:
        theory: The theory.
        status: "applies"; "almost" if some violations are tolerable; "unknown" if some assumption could not be measured
            and no other is violated too much; or "no".
        assumptions: The measured assumptions of the theory.
        cost: The estimated run time, as text.
        error: The expected error, as text; empty if unknown.
        call: The Python call that predicts with this theory, given `task` and `network`; empty if the structure of the
            network rules the theory out.
        obstacle: The property of the network that rules the theory out, if any.
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
        """The name of the theory, as in `predict(..., theory=name)`."""
        return self.theory.name

    @property
    def training(self) -> tuple[Measured, ...]:
        """The assumptions about training, which all theories share."""
        return tuple(each for each in self.assumptions if each.assumption in TRAINING)

    @property
    def violated(self) -> tuple[Measured, ...]:
        """The assumptions that do not hold."""
        return tuple(each for each in self.assumptions if each.holds is False)

    @property
    def unmeasured(self) -> tuple[Measured, ...]:
        """The assumptions that could not be measured."""
        return tuple(each for each in self.assumptions if each.holds is None)

    def __str__(self) -> str:
        return theories_text([self], width=76)


class Candidates(tuple[Candidate, ...]):
    """Candidate theories, the best first, and calls that measure the network without a theory.

    Attributes:
        network: Description of the network.
        observing: Calls that measure the network, given `task` and `network`; replace the words in capitals.
    """

    network: str
    observing: tuple[str, ...]

    def __new__(cls, found: Iterable[Candidate], *, network: str, observing: Sequence[str]) -> Candidates:
        """Create the tuple, with the candidates in ranked order."""
        made = super().__new__(cls, sorted(found, key=rank))
        made.network, made.observing = network, tuple(observing)
        return made

    def as_text(self, *, width: int, command: Callable[[Candidate], str] | None = None) -> str:
        """Format all candidates as text.

        Args:
            width: Width in columns; commands are never wrapped.
            command: Returns the command line for a candidate, if there is one.
        """
        return theories_text(self, width=width, command=command)

    def __str__(self) -> str:
        text = self.as_text(width=76, command=lambda each: each.call)
        return f"{self.network}\n\n{text}\n\nTo train and measure without a theory:\n\n{self.observing_text}"

    @property
    def observing_text(self) -> str:
        """The calls that measure the network without a theory, one indented line each."""
        return "\n".join(f"    {line}" for line in self.observing)


def rank(candidate: Candidate) -> tuple[float, ...]:
    """Return the sort key of a candidate; the best comes first."""
    if candidate.obstacle:
        return len(_ORDER) - 1, 0.0, 0, 0
    order = _ORDER.index(candidate.status)
    worst = max((_excess(each) for each in candidate.violated), default=0.0)
    return order, worst if order else 0.0, not candidate.theory.exact, candidate.theory.domain is None


def _excess(measured: Measured) -> float:
    """Return the violation divided by the largest tolerable violation."""
    assert measured.value is not None
    acceptable = measured.assumption.almost
    return measured.value / acceptable if acceptable > 0 else float("inf")
