"""Theories that decide without training whether a network is lazy or rich."""

from __future__ import annotations

from typing import NamedTuple

from dynascope.prediction.candidate import Candidate
from dynascope.prediction.case import Case
from dynascope.prediction.lazy_or_rich.labels import Label
from dynascope.prediction.which_theory import fitting
from dynascope.theory.assumptions import LAZY_TRAINING, SMALL_START, Assumption

__all__ = ["Decision", "by_theory"]

_ROUGHLY_RICH = 1.0  # relative movement of linearised weights at which linearised training fails


class Decision(NamedTuple):
    """The decision of a theory.

    Attributes:
        label: "lazy" or "rich".
        theory: Name of the theory.
        number: The deciding number.
        threshold: Its threshold.
        reason: Both, in a sentence.
        factor: Estimated output scale at which the regime changes: the linearised weights move in inverse proportion to
            it. None if their movement is not known.
    """

    label: Label
    theory: str
    number: float
    threshold: float
    reason: str
    factor: float | None


def by_theory(case: Case) -> Decision | None:
    """Return the decision of the theories; None if they do not decide.

    The theory of lazy training decides if the linearised weights move by at most 5 % of their norm. A theory of small
    initial weights decides if it applies to a network with kinks, or without samples, and the linearised weights move
    by more than their norm.
    """
    found = {each.name: each for each in fitting(case)}
    lazy = found.get("kernel-regression")
    moved = None if lazy is None else _value(lazy, LAZY_TRAINING)
    if moved is not None and moved <= LAZY_TRAINING.limit and lazy is not None and lazy.status == "applies":
        reason = (
            f"By the theory of lazy training (kernel-regression), the weights move by {moved:.2g} of their norm "
            f"(lazy: at most {LAZY_TRAINING.limit:g})."
        )
        return Decision("lazy", lazy.name, moved, LAZY_TRAINING.limit, reason, max(moved, 1e-12) / _ROUGHLY_RICH)
    for each in found.values():
        scale = _value(each, SMALL_START)
        if scale is None or scale > SMALL_START.limit or each.status not in ("applies", "almost"):
            continue
        if _learns_features(case) and (moved is None or moved > _ROUGHLY_RICH):
            reason = (
                f"By the theory of small initial weights ({each.name}), the network learns features one after another "
                f"at scale {scale:.2g} (rich: at most {SMALL_START.limit:g})."
            )
            factor = None if moved is None else moved / LAZY_TRAINING.limit
            return Decision("rich", each.name, scale, SMALL_START.limit, reason, factor)
    return None


def _learns_features(case: Case) -> bool:
    return case.samples is None or case.activation in ("relu", "quadratic")


def _value(candidate: Candidate, assumption: Assumption) -> float | None:
    return next((each.value for each in candidate.assumptions if each.assumption == assumption), None)
