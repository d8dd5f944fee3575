"""Power laws of one resource, and of N parameters and D samples with the best way to spend compute on both."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from dynascope.results.named_tuples import short_repr
from dynascope.validation import checked, require, require_broadcast
from dynascope.validation.bounded import PositiveFloat, PositiveNumbers

__all__ = ["IsoFlop", "JointLaw", "PowerLaw", "Split"]

_AROUND = np.geomspace(1 / 30, 30, 61)  # of the best number of parameters, along a curve of equal compute


class PowerLaw(NamedTuple):
    """L = prefactor · x^−exponent.

    Attributes:
        prefactor: Loss at one unit of the resource.
        exponent: Positive if the loss falls.
    """

    prefactor: float
    exponent: float

    __repr__ = short_repr

    @checked
    def loss(self, resource: PositiveNumbers) -> Float[np.ndarray, ...]:
        """The loss at some amounts of the resource."""
        return self.prefactor * np.asarray(resource) ** -self.exponent


class Split(NamedTuple):
    """The best use of compute C = cost · N · D.

    Attributes:
        parameters: N*, not rounded.
        data: D*.
        loss: The loss there.
        exponent: N* ∝ C^exponent, and D* ∝ C^(1 − exponent).
    """

    parameters: Float[np.ndarray, ...]
    data: Float[np.ndarray, ...]
    loss: Float[np.ndarray, ...]
    exponent: float

    __repr__ = short_repr


class IsoFlop(NamedTuple):
    """Losses at equal compute.

    Attributes:
        parameters: N.
        data: D = C/(cost · N).
        loss: The loss.
    """

    parameters: Float[np.ndarray, " points"]
    data: Float[np.ndarray, " points"]
    loss: Float[np.ndarray, " points"]

    __repr__ = short_repr


class JointLaw(NamedTuple):
    """L = floor + A N^−a + B D^−b.

    Attributes:
        floor: E, which no resource removes.
        parameters_prefactor: A.
        parameters_exponent: a.
        data_prefactor: B.
        data_exponent: b.

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
        """The loss at N and D, which may be arrays that fit each other.

        Raises:
            InputError: A number that is not positive.
        """
        n, d = np.asarray(parameters), np.asarray(data)
        require_broadcast(parameters=n.shape, data=d.shape)
        from_parameters = self.parameters_prefactor * n**-self.parameters_exponent
        return self.floor + from_parameters + self.data_prefactor * d**-self.data_exponent

    @checked
    def split(self, compute: PositiveNumbers, *, cost: PositiveFloat = 6.0) -> Split:
        """The N* and D* of least loss for the compute C = cost · N · D: N* = (aA/bB)^(1/(a+b)) (C/cost)^(b/(a+b)).

        Args:
            compute: C > 0, of any shape.
            cost: Compute of one parameter and one sample: six operations, if samples are tokens of a transformer.

        Raises:
            InputError: A number that is not positive, or a law of which a term does not fall.
        """
        a, b = self.parameters_exponent, self.data_exponent
        require(
            min(a, b, self.parameters_prefactor, self.data_prefactor) > 0,
            "a term of the law does not fall",
            argument="law",
            value=tuple(self),
            remedy="fit losses that fall with parameters and with data",
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
        """The losses of models of different size that all spend the compute C.

        Args:
            compute: C > 0.
            parameters: N, shape (points,); a thirtieth to thirty times the best if not given.
            cost: As in `split`.

        Raises:
            InputError: A number that is not positive.
        """
        best = self.split(compute, cost=cost)
        n = np.ravel(best.parameters * _AROUND if parameters is None else parameters)
        d = compute / cost / n
        return IsoFlop(n, d, self.loss(n, d))
