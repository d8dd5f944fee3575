"""Arithmetic modulo p, with some of all pairs for training and the others held out: the task of grokking."""

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
_FEWEST = 2  # pairs on either side, as a task needs


@checked
@dataclasses.dataclass(frozen=True)
class ModularArithmetic:
    """The table of c = a ∘ b modulo p, split into training and test pairs.

    The pairs are all (a, b) from 0 to p − 1, ordered by a, then by b. Multiplication keeps the 2p − 1 pairs with a
    zero, which all give 0. Division a/b, the c with c b = a, leaves out b = 0 and keeps a = 0, and needs a prime p.

    The split is plain random: every set of training pairs of that size is equally likely, and classes are as unequal
    as chance makes them.

    Attributes:
        operation: "addition", "subtraction", "multiplication" or "division".
        p: The modulus, from 3 to 256.
        train_fraction: Fraction of the pairs that is trained on, rounded to whole pairs.
        symmetric: Whether (a, b) and (b, a) come to the same side, so that no test pair is a training pair turned
            around; for addition and multiplication. Where the pairs of equals are used up, one training pair may be
            missing.
        seed: Seed of the split.

    Raises:
        InputError: An unknown operation, a modulus out of range, or not prime for division, a fraction that leaves
            fewer than two pairs on a side, or a symmetric split of an operation that is not.

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
            f"p is {self.p}, by which not every number can be divided",
            argument="p",
            value=self.p,
            remedy="choose a prime number",
        )
        require(
            not self.symmetric or self.operation in ("addition", "multiplication"),
            f"a {self.operation} is not symmetric",
            argument="symmetric",
            value=self.symmetric,
            remedy="leave it out, or choose addition or multiplication",
        )
        require(
            _FEWEST <= self._train_count <= len(self.pairs) - _FEWEST,
            f"train_fraction is {self.train_fraction}, which trains on {self._train_count} of {len(self.pairs)} pairs",
            argument="train_fraction",
            value=self.train_fraction,
            remedy="choose a number between 0 and 1 that leaves two pairs or more on either side",
        )

    @functools.cached_property
    def pairs(self) -> Int[np.ndarray, "n 2"]:
        """All pairs (a, b)."""
        first, second = np.divmod(np.arange(self.p**2), self.p)
        kept = second > 0 if self.operation == "division" else slice(None)
        return np.stack([first, second], axis=1)[kept]

    @functools.cached_property
    def results(self) -> Int[np.ndarray, " n"]:
        """The results c of all pairs, their labels."""
        a, b = self.pairs.T
        if self.operation == "division":
            inverses = np.array([0, *(pow(k, -1, int(self.p)) for k in range(1, self.p))])
            return a * inverses[b] % self.p
        return {"addition": a + b, "subtraction": a - b, "multiplication": a * b}[self.operation] % self.p

    @functools.cached_property
    def trained(self) -> Bool[np.ndarray, " n"]:
        """Which pairs are trained on."""
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
        """The training pairs: inputs (n, 2p), the one-hot a beside the one-hot b, and the one-hot result (n, p)."""
        return self._task(self.trained, "training")

    @functools.cached_property
    def test(self) -> Task:
        """The other pairs."""
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
