"""Power laws in one resource, joint laws in parameters and data, and the optimal split of compute."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from dynascope.results.named_tuples import short_repr
from dynascope.validation import checked, require, require_broadcast
from dynascope.validation.bounded import PositiveFloat, PositiveNumbers

__all__ = ["IsoFlop", "JointLaw", "PowerLaw", "Split"]

_AROUND = np.geomspace(1 / 30, 30, 61)  # default sizes along a curve of equal compute, relative to the optimum


class PowerLaw(NamedTuple):
    """The power law L = prefactor · x^−exponent.

    Attributes:
        prefactor: Loss at x = 1.
        exponent: Exponent of the law; positive if the loss falls.
    """

    prefactor: float
    exponent: float

    __repr__ = short_repr

    @checked
    def loss(self, resource: PositiveNumbers) -> Float[np.ndarray, ...]:
        """Return the loss at resource values x > 0."""
        return self.prefactor * np.asarray(resource) ** -self.exponent


class Split(NamedTuple):
    """Optimal split of the compute C = cost · N · D.

    Attributes:
        parameters: Optimal number of parameters N*, not rounded.
        data: Optimal number of samples D*.
        loss: Loss at N* and D*.
        exponent: Exponent of N* ∝ C^exponent and D* ∝ C^(1 − exponent).
    """

    parameters: Float[np.ndarray, ...]
    data: Float[np.ndarray, ...]
    loss: Float[np.ndarray, ...]
    exponent: float

    __repr__ = short_repr


class IsoFlop(NamedTuple):
    """Losses at equal compute.

    Attributes:
        parameters: Number of parameters N.
        data: Number of samples D = C/(cost · N).
        loss: Loss at N and D.
    """

    parameters: Float[np.ndarray, " points"]
    data: Float[np.ndarray, " points"]
    loss: Float[np.ndarray, " points"]

    __repr__ = short_repr


class JointLaw(NamedTuple):
    """The joint law L = E + A N^−a + B D^−b of N parameters and D samples.

    Attributes:
        floor: Irreducible loss E.
        parameters_prefactor: Prefactor A of the parameters.
        parameters_exponent: Exponent a of the parameters.
        data_prefactor: Prefactor B of the data.
        data_exponent: Exponent b of the data.

    Example:
        >>> law = JointLaw(1.69, 406.4, 0.34, 410.7, 0.28)  # of Hoffmann et al.
        >>> best = law.split(5.76e23)
        >>> print(f"{best.parameters:.2e} {best.data:.2e} {best.loss:.3f} {best.exponent:.3f}")
        3.22e+10 2.98e+12 1.931 0.452
    """

    floor: float
    parameters_prefactor: float
    parameters_exponent: float
    data_prefactor: float
    data_exponent: float

    __repr__ = short_repr

    @checked
    def loss(self, parameters: PositiveNumbers, data: PositiveNumbers) -> Float[np.ndarray, ...]:
        """Return the loss at N parameters and D samples.

        Args:
            parameters: N > 0, of any shape.
            data: D > 0, of a shape that broadcasts with that of the parameters.

        Raises:
            InputError: If a number is not positive, or the shapes do not broadcast.
        """
        n, d = np.asarray(parameters), np.asarray(data)
        require_broadcast(parameters=n.shape, data=d.shape)
        from_parameters = self.parameters_prefactor * n**-self.parameters_exponent
        return self.floor + from_parameters + self.data_prefactor * d**-self.data_exponent

    @checked
    def split(self, compute: PositiveNumbers, *, cost: PositiveFloat = 6.0) -> Split:
        """Compute the N* and D* that minimise the loss for the compute C = cost · N · D.

            N* = (aA/bB)^(1/(a+b)) (C/cost)^(b/(a+b)),  D* = C/(cost · N*)

        Args:
            compute: C > 0, of any shape.
            cost: Compute per parameter and sample; for a transformer, 6 FLOPs per parameter and token.

        Raises:
            InputError: If a number is not positive, or a term of the law does not fall.
        """
        a, b = self.parameters_exponent, self.data_exponent
        require(
            min(a, b, self.parameters_prefactor, self.data_prefactor) > 0,
            "a term of the law does not decrease",
            argument="law",
            value=tuple(self),
            remedy="fit losses that decrease with both parameters and data",
        )
        levels = math.log(a * self.parameters_prefactor) - math.log(b * self.data_prefactor)
        total = np.log(compute) - math.log(cost)
        log_parameters = (levels + b * total) / (a + b)
        n, d = np.exp(log_parameters), np.exp(total - log_parameters)
        return Split(n, d, self.loss(n, d), b / (a + b))

    @checked
    def isoflop(
        self, compute: PositiveFloat, parameters: PositiveNumbers | None = None, *, cost: PositiveFloat = 6.0
    ) -> IsoFlop:
        """Compute the losses of models of different sizes at equal compute C.

        Args:
            compute: C > 0.
            parameters: N > 0, shape (points,); from N*/30 to 30 N* if not given.
            cost: Compute per parameter and sample, as in `split`.

        Raises:
            InputError: If a number is not positive, or a term of the law does not fall.
        """
        best = self.split(compute, cost=cost)
        n = np.ravel(best.parameters * _AROUND if parameters is None else parameters)
        d = compute / cost / n
        return IsoFlop(n, d, self.loss(n, d))
