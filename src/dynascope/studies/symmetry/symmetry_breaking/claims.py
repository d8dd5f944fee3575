"""The claims about the loss, the gap between optimisers, questions and keys, with confidence intervals over seeds."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dynascope.comparison import Claim, claim_on_mean
from dynascope.studies.symmetry.symmetry_breaking.cells import Measured
from dynascope.studies.symmetry.symmetry_breaking.optimizers import ADAPTIVE, SIMPLE

__all__ = ["CHANCE", "breaking_claims", "deciding_claims"]

CHANCE = 0.5  # accuracy of guessing
_LOSS, _ACCURACY = 1e-3, 0.01  # smallest changes that count, in nats per character and as a share of the questions


def deciding_claims(optimizers: Sequence[str], classes: Sequence[str]) -> tuple[str, ...]:
    """Names of all claims about the chosen optimisers and token classes.

    Args:
        optimizers: Names of the optimisers.
        classes: Names of the token classes.
    """
    simple, adaptive = _chosen(optimizers)
    return (
        *(f"loss, {name}" for name in simple),
        *(f"gap, {name} to {other}" for name in simple for other in adaptive),
        *(f"keys, {name}" for name in classes),
        *(f"{kind}, {name}" for name in simple for kind in ("questions", "longer chains")),
    )


def breaking_claims(
    measured: Measured, optimizers: Sequence[str], classes: Sequence[str], untrained_loss: float
) -> list[Claim]:
    """Evaluate the claims.

    Runs with the same seed have the same initial weights and batches, so their differences are compared. A claim about
    questions is undecided if neither intact nor broken networks answer better than guessing, and a claim about keys is
    undecided if the networks predict characters no better than by their frequencies.

    Args:
        measured: Measurements without NaN.
        optimizers: Names of the optimisers, in the order of the measurements.
        classes: Names of the token classes, in the order of the measurements.
        untrained_loss: Held-out loss of the frequencies of the characters.
    """
    simple, adaptive = _chosen(optimizers)
    intact, broken = (dict(zip(optimizers, measured.test_loss[:, k], strict=True)) for k in (0, 1))
    claims = [
        claim_on_mean(
            f"loss, {name}",
            f"Broken symmetry lowers the held-out loss of {name} (difference in nats per character).",
            intact[name] - broken[name],
            least=_LOSS,
        )
        for name in simple
    ]
    claims += [
        claim_on_mean(
            f"gap, {name} to {other}",
            f"Broken symmetry narrows the gap between the losses of {name} and {other} (change in nats per character).",
            (intact[name] - intact[other]) - (broken[name] - broken[other]),
            least=_LOSS,
        )
        for name in simple
        for other in adaptive
    ]
    learned = bool(measured.test_loss[:, 1].mean() < untrained_loss)
    claims += [
        claim_on_mean(
            f"keys, {name}",
            f"With broken symmetry, the keys of the class “{name}” are aligned with the mean query bias in some head "
            "more than with 95 % of random directions (difference of the mean cosines).",
            excess,
            least=0.0,
        ).if_known(learned, "with broken symmetry, networks predict characters no better than by their frequencies")
        for name, excess in zip(classes, measured.alignment[:, 1].mean(axis=0).T, strict=True)
    ]
    kinds = (
        ("questions", measured.known_accuracy, "chains of the lengths in training"),
        ("longer chains", measured.longer_accuracy, "chains longer than those in training"),
    )
    claims += [
        _claim_on_questions(f"{kind}, {name}", name, chains, *accuracy[optimizers.index(name)])
        for name in simple
        for kind, accuracy, chains in kinds
    ]
    return claims


def _claim_on_questions(title: str, name: str, chains: str, intact: np.ndarray, broken: np.ndarray) -> Claim:
    """Compare accuracies; if all networks guess, they do not show how their attention affects reasoning."""
    claim = claim_on_mean(
        title, f"Broken symmetry raises the accuracy of {name} on {chains}.", broken - intact, least=_ACCURACY
    )
    answered = bool(max(intact.mean(), broken.mean()) >= CHANCE + _ACCURACY)
    return claim.if_known(answered, "with intact and with broken symmetry, networks guess")


def _chosen(optimizers: Sequence[str]) -> tuple[list[str], list[str]]:
    simple, adaptive = ([name for name in names if name in optimizers] for names in (SIMPLE, ADAPTIVE))
    return simple, adaptive
