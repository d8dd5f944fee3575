"""Settings of stochastic gradient descent for theories of discrete steps."""

from __future__ import annotations

import dataclasses
from typing import Annotated, TypeAlias

from annotated_types import Ge, Lt

from dynascope.validation import checked, require
from dynascope.validation.bounded import FiniteFloat, NonNegativeFloat, PositiveFloat, PositiveInt

__all__ = ["SGD", "Momentum", "steps_of"]

Momentum: TypeAlias = Annotated[FiniteFloat, Ge(0), Lt(1)]


@checked
@dataclasses.dataclass(frozen=True)
class SGD:
    """SGD with heavy-ball momentum and weight decay: v ← β v − (g + λ θ), θ ← θ + η v.

    g is the gradient averaged over the samples in a batch.

    Attributes:
        learning_rate: η > 0.
        momentum: β ≥ 0, below one.
        weight_decay: λ ≥ 0.
        batch_size: S ≥ 1, the number of samples in a batch.
        samples: N ≥ S, the number of samples in the data, if each batch is drawn without replacement and independently
            of the other batches. This reduces the noise covariance by the factor (N − S)/(N − 1). None if samples are
            drawn with replacement. Epochs that use every sample once are not covered.

    Raises:
        InputError: If a setting is out of range or traced by JAX, or the batch size exceeds the number of samples.

    References:
        Kunin, Sagastuy-Breña, Gillespie, Margalit, Tanaka, Ganguli, Yamins, arXiv:2107.09133.

    Example:
        >>> SGD(0.1, momentum=0.9, batch_size=50, samples=100).noise_share
        0.010101010101010102
    """

    learning_rate: PositiveFloat
    momentum: Momentum = 0.0
    weight_decay: NonNegativeFloat = 0.0
    batch_size: PositiveInt = 1
    samples: PositiveInt | None = None

    def __post_init__(self):
        require(
            self.samples is None or self.batch_size <= self.samples,
            f"batch_size is {self.batch_size}, but samples is only {self.samples}",
            argument="batch_size",
            value=self.batch_size,
            remedy="choose a smaller batch, or omit samples to draw batches with replacement",
        )

    @property
    def noise_share(self) -> float:
        """Noise covariance of a batch divided by that of one sample: 1/S, or (N − S)/(S(N − 1)) without replacement."""
        if self.samples is None:
            return 1 / self.batch_size
        return (self.samples - self.batch_size) / (self.batch_size * max(self.samples - 1, 1))

    @property
    def without_batches(self) -> SGD:
        """Return a copy without the batch settings, for laws that do not depend on the batch size."""
        return dataclasses.replace(self, batch_size=1, samples=None)

    def require_without_batches(self) -> None:
        """Raise `InputError` if batch settings are given for a law that does not depend on them."""
        require(
            self == self.without_batches,
            f"batch_size is {self.batch_size} and samples is {self.samples}, but this law does not depend on batches",
            argument="batch_size",
            value=self.batch_size,
            remedy="omit both settings, or pass sgd.without_batches",
        )


def steps_of(sgd: SGD) -> tuple[float, float, float]:
    """Return η, λ and β, after checking that no batch settings are given."""
    sgd.require_without_batches()
    return float(sgd.learning_rate), float(sgd.weight_decay), float(sgd.momentum)
