"""The claims about accuracy, alignment, fragility and noise of the rules, with confidence intervals over seeds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from dynascope.comparison import Claim, claim_on_mean
from dynascope.interventions import CREDIT_RULES
from dynascope.studies.interventions.credit_assignment.runs import GRID_RULES

__all__ = ["DECIDING", "credit_claims", "transfer_losses", "working_shares"]

RULES = tuple(CREDIT_RULES)
_FA, _BP = "feedback alignment", "backpropagation"
_ORDER = (
    ("symmetric alignment", "weight mirror"),
    ("activation alignment", "weight mirror"),
    ("weight mirror", "information alignment"),
    ("information alignment", _FA),
)
_ABOVE = tuple(name for name in RULES if name not in (_FA, _BP))
_FLOOR = 0.05  # relative deviation of the angle from the predicted floor
_STABLE = ("information alignment", "activation alignment", "symmetric alignment")

DECIDING = (
    *(f"angle, {low} < {high}" for low, high in _ORDER),
    *(f"accuracy, {name}" for name in _ABOVE),
    "gap over depth",
    "noise floor",
    "noisy accuracy",
    *(f"fragility, {name}" for name in _STABLE),
    *(f"transfer, {name}" for name in _STABLE),
)


def working_shares(accuracy: np.ndarray, threshold: float) -> np.ndarray:
    """The share of the settings on the grid that train a network, by rule and seed.

    Args:
        accuracy: Test accuracy by rule, learning rate, strength and seed.
        threshold: Accuracy at which a network counts as trained.
    """
    return np.mean(accuracy >= threshold, axis=(1, 2))


def transfer_losses(first: np.ndarray, other: np.ndarray) -> np.ndarray:
    """The accuracy lost on one architecture with settings tuned on another one, by rule and seed.

    The loss is relative to the best settings for the other architecture. The best settings for an architecture have the
    largest mean accuracy over seeds.

    Args:
        first: Test accuracy of the first architecture by rule, learning rate, strength and seed.
        other: The same for the other architecture, on which losses are measured.
    """
    tuned, flat = (each.reshape(len(each), -1, each.shape[-1]) for each in (first, other))
    rules = np.arange(len(flat))
    transferred, best = (each.mean(axis=2).argmax(axis=1) for each in (tuned, flat))
    return flat[rules, best] - flat[rules, transferred]


def credit_claims(found: Mapping[str, np.ndarray], depths: Sequence[int]) -> list[Claim]:
    """All claims of the study.

    Args:
        found: Measurements by name, with seeds along the last axis.
        depths: Numbers of layers, in increasing order.
    """
    angle, accuracy = (dict(zip(RULES, found[name], strict=True)) for name in ("weight_angle", "test_accuracy"))
    share, loss = (dict(zip(GRID_RULES, found[name], strict=True)) for name in ("working_share", "transfer_loss"))
    deepest, claims = max(depths), []
    for low, high in _ORDER:
        statement = (
            f"Feedback weights are closer to the weights with {low} than with {high} "
            f"({deepest} layers; difference of the angles in degrees)."
        )
        claims.append(_on_mean(f"angle, {low} < {high}", statement, (angle[high] - angle[low])[-1], least=0))
    for name in _ABOVE:
        statement = f"{_capital(name)} reaches a higher test accuracy than {_FA} ({deepest} layers)."
        claims.append(_on_mean(f"accuracy, {name}", statement, (accuracy[name] - accuracy[_FA])[-1], least=0))
    gap = accuracy[_BP] - accuracy[_FA]
    centred = np.asarray(depths, float) - np.mean(depths)
    claims.append(
        _on_mean(
            "gap over depth",
            f"The gap in test accuracy between {_BP} and {_FA} grows with depth (change per layer).",
            centred @ gap / np.sum(centred**2),
            least=0,
        )
    )
    claims.append(
        _on_mean(
            "noise floor",
            "With noisy updates, the angle of symmetric alignment agrees with the predicted noise floor to within 5 % "
            "(ratio of the angles, averaged over noise levels).",
            np.mean(found["noisy_angle"] / found["noise_floor"], axis=0),
            least=1 - _FLOOR,
            most=1 + _FLOOR,
        )
    )
    claims.append(
        _on_mean(
            "noisy accuracy",
            f"Symmetric alignment with the largest noise reaches a higher test accuracy than {_FA}.",
            found["noisy_accuracy"][-1] - found["feedback_alignment_accuracy"],
            least=0,
        )
    )
    for name in _STABLE:
        statement = (
            f"{_capital(name)} trains the network with more of the settings on the grid than the weight mirror does."
        )
        claims.append(_on_mean(f"fragility, {name}", statement, share[name] - share["weight mirror"], least=0))
    for name in _STABLE:
        statement = (
            f"With {name}, settings tuned on one architecture lose less test accuracy on another architecture than "
            "with the weight mirror (difference of the losses)."
        )
        claims.append(_on_mean(f"transfer, {name}", statement, loss["weight mirror"] - loss[name], least=0))
    return claims


def _on_mean(name: str, statement: str, runs: np.ndarray, **bounds: float) -> Claim:
    """A claim about a mean over seeds; undecided if a run diverged, or if no run shows a difference."""
    if np.isfinite(runs).all():
        claim = claim_on_mean(name, statement, runs, **bounds)
        return claim.if_known(bool(np.any(runs)), "no run shows a difference")
    least, most = bounds.get("least", -np.inf), bounds.get("most", np.inf)
    return Claim(name, statement, np.nan, least=least, most=most, unknown="a run diverged")


def _capital(name: str) -> str:
    return name[0].upper() + name[1:]
