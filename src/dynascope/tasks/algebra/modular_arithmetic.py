"""Arithmetic modulo p with held-out pairs, the standard task for grokking."""

from __future__ import annotations

import dataclasses
import functools
from typing import Annotated, Literal

import numpy as np
from annotated_types import Interval
from jaxtyping import Bool, Int

from dynascope.tasks.task import Task
from dynascope.validation import checked, require
from dynascope.validation.bounded_scalars import OpenFraction, Seed

__all__ = ["ModularArithmetic"]

_OPERATIONS = {"addition": "+", "subtraction": "−", "multiplication": "·", "division": "/"}
_MOST_NUMBERS = 256  # the samples hold 3 p³ numbers, 400 MB at this p
_FEWEST = 2  # pairs that each side of the split needs


@checked
@dataclasses.dataclass(frozen=True)
class ModularArithmetic:
    """The table of c = a ∘ b modulo p, split into training and test pairs.

    The pairs (a, b) with 0 ≤ a, b < p are ordered by a, then by b. Multiplication includes the 2p − 1 pairs with a
    zero, whose result is 0. The quotient a/b is the solution c of c b = a; division requires a prime p and excludes
    b = 0, but not a = 0.

    The split is uniformly random and not stratified: every set of training pairs of the given size is equally likely.

    Attributes:
        operation: "addition", "subtraction", "multiplication" or "division".
        p: The modulus, from 3 to 256.
        train_fraction: Fraction of the pairs used for training, rounded to whole pairs.
        symmetric: Whether (a, b) and (b, a) are on the same side of the split, so that no test pair is a training pair
            in reverse order. Supported only for addition and multiplication. The training set can be one pair smaller
            than `train_fraction` requires if no pair (a, a) remains to complete it.
        seed: Seed of the split.

    Raises:
        InputError: If the operation is unknown, if p is out of range or, for division, not prime, if either side has
            fewer than two pairs, or if `symmetric` is set for subtraction or division.

    References:
        A. Power et al., Grokking: generalization beyond overfitting on small algorithmic datasets, arXiv:2201.02177.

    Example:
        >>> table = ModularArithmetic("division", 5, train_fraction=0.6)
        >>> table.train.samples, table.test.samples, table.train.input_dimension
        (12, 8, 10)
        >>> table.pairs[6].tolist(), int(table.results[6])  # 3 · 3 = 4 modulo 5; hence 1/3 = 2
        ([1, 3], 2)
    """

    operation: Literal["addition", "subtraction", "multiplication", "division"]
    p: Annotated[int, Interval(ge=3, le=_MOST_NUMBERS)]
    train_fraction: OpenFraction
    symmetric: bool = False
    seed: Seed = 0

    def __post_init__(self):
        require(
            self.operation != "division" or all(self.p % k for k in range(2, self.p)),
            f"p is {self.p}, which is not prime, so division modulo p is not always defined",
            argument="p",
            value=self.p,
            remedy="choose a prime number",
        )
        require(
            not self.symmetric or self.operation in ("addition", "multiplication"),
            f"symmetric is True, but {self.operation} is not a symmetric operation",
            argument="symmetric",
            value=self.symmetric,
            remedy="omit symmetric, or choose addition or multiplication",
        )
        require(
            _FEWEST <= self._train_count <= len(self.pairs) - _FEWEST,
            f"train_fraction is {self.train_fraction}, which selects {self._train_count} of {len(self.pairs)} pairs",
            argument="train_fraction",
            value=self.train_fraction,
            remedy="choose a fraction that leaves at least two pairs in each part",
        )

    @functools.cached_property
    def pairs(self) -> Int[np.ndarray, "n 2"]:
        """All pairs (a, b)."""
        first, second = np.divmod(np.arange(self.p**2), self.p)
        kept = second > 0 if self.operation == "division" else slice(None)
        return np.stack([first, second], axis=1)[kept]

    @functools.cached_property
    def results(self) -> Int[np.ndarray, " n"]:
        """The result c of each pair, which is its class label."""
        a, b = self.pairs.T
        if self.operation == "division":
            inverses = np.array([0, *(pow(k, -1, int(self.p)) for k in range(1, self.p))])
            return a * inverses[b] % self.p
        return {"addition": a + b, "subtraction": a - b, "multiplication": a * b}[self.operation] % self.p

    @functools.cached_property
    def trained(self) -> Bool[np.ndarray, " n"]:
        """Mask of the training pairs."""
        draw = np.random.default_rng(self.seed)
        chosen = np.zeros(len(self.pairs), bool)
        if not self.symmetric:
            chosen[draw.permutation(len(chosen))[: self._train_count]] = True
            return chosen
        a, b = self.pairs.T
        _, group = np.unique(np.minimum(a, b) * self.p + np.maximum(a, b), return_inverse=True)
        sizes, left = np.bincount(group), self._train_count
        for each in draw.permutation(len(sizes)):
            if sizes[each] <= left:
                chosen[group == each] = True
                left -= sizes[each]
        return chosen

    @functools.cached_property
    def train(self) -> Task:
        """The training pairs: inputs (n, 2p) are one-hot a and b side by side, targets (n, p) are one-hot results."""
        return self._task(self.trained, "training")

    @functools.cached_property
    def test(self) -> Task:
        """The test pairs, encoded like the training pairs."""
        return self._task(~self.trained, "test")

    @property
    def _train_count(self) -> int:
        return round(self.train_fraction * len(self.pairs))

    def _task(self, kept: np.ndarray, side: str) -> Task:
        ones = np.eye(self.p)
        inputs = ones[self.pairs[kept]].reshape(-1, 2 * self.p)
        return Task(
            inputs,
            ones[self.results[kept]],
            name=f"modular {self.operation}, p = {self.p}, {side} pairs",
            description=(
                f"{len(inputs)} of the {len(self.pairs)} pairs a {_OPERATIONS[self.operation]} b modulo {self.p}.",
                "Numbers are encoded as one-hot vectors.",
            ),
        )
