"""Claims about the direction in which the alignment of two layers changes during training."""

from __future__ import annotations

import numpy as np

from dynascope.comparison import Claim

__all__ = ["direction_claim"]

_CONSTANT = 1e-6  # smaller changes in the alignment are solver errors


def direction_claim(name: str, statement: str, alignment: np.ndarray, signs: np.ndarray) -> Claim:
    """Claim that alignments change with the predicted signs, or stay constant where the sign is zero.

    Args:
        name: Name of the claim.
        statement: The claim in a sentence.
        alignment: Alignment during training, shape (times, starts).
        signs: Predicted signs of the changes, shape (starts,).

    Example:
        >>> direction_claim("flow", "They align.", np.array([[0.1, 0.9], [0.8, 0.9]]), np.array([1, 0])).outcome
        'holds'
    """
    change = alignment[-1] - alignment[0]
    right = np.where(np.abs(change) > _CONSTANT, np.sign(change), 0) == signs
    return Claim(name, statement, int(right.sum()), least=len(signs))
